// SPDX-License-Identifier: Apache-2.0
// Objects of the fleet as tables for people. Pure.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>

#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/views/table.h"
#include "rocegw/types/v1/gateway.pb.h"

namespace rocegw::cli {

// The columns of a kind; wide: more of them.
Table ObjectTable(const Kind& kind, bool wide);
// now: seconds since 1970, for ages.
void AddObject(const Kind& kind, const google::protobuf::Message& object, bool wide, int64_t now,
               Table& table);
// What a watch tells of one that is gone.
void AddDeleted(const Kind& kind, const std::string& name, bool wide, Table& table);

// One word: "ok", "disconnected", "no-daemon", "unadopted", "rejecting", "behind", "draining",
// "drained".
std::string GatewayWord(const types::v1::Gateway& gateway);
// Why it is not "ok", in a few words.
std::string GatewayReason(const types::v1::Gateway& gateway, int64_t now);

}  // namespace rocegw::cli
