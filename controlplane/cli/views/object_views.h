// SPDX-License-Identifier: Apache-2.0
// Tables of the fleet's objects. Pure.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>

#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/views/table.h"
#include "rocegw/types/v1/donor.pb.h"
#include "rocegw/types/v1/gateway.pb.h"

namespace rocegw::cli {

// Columns of a kind; `wide`: more columns.
Table ObjectTable(const Kind& kind, bool wide);
// `now`: seconds since 1970, for ages.
void AddObject(const Kind& kind, const google::protobuf::Message& object, bool wide, int64_t now,
               Table& table);
// Adds the row of a deleted object in a watch.
void AddDeleted(const Kind& kind, const std::string& name, bool wide, Table& table);

// Returns the state as one word: "serving", "draining", "drained", "silent", "absent", "unseen".
std::string DonorWord(const types::v1::Donor& donor);
// Whether the donor drains and has no leases, as its last report said.
bool IsDrained(const types::v1::Donor& donor);
// Returns why a wait for the donor to be drained has no sense; empty: it has.
std::string WhyNoWait(const types::v1::Donor& donor);
// Returns the state as one word: "ok", "disconnected", "no-daemon", "unadopted", "rejecting",
// "behind", "draining", "drained".
std::string GatewayWord(const types::v1::Gateway& gateway);
// Returns in a few words why the state is not "ok".
std::string GatewayReason(const types::v1::Gateway& gateway, int64_t now);

}  // namespace rocegw::cli
