// SPDX-License-Identifier: Apache-2.0
// Records of the request_ids of calls that were carried out, in the store. A repetition finds the
// record of the first call and changes nothing. Pure except for the clock; any thread.
#pragma once

#include <optional>
#include <string>

#include "controlplane/api/calls/call.h"
#include "controlplane/store/transaction.h"

namespace rocegw::api {

// Adds the record of the call's request_id and its answer to the transaction that carries the call
// out, which then fails if there is one already. Adds nothing without a request_id.
void AddRequestRecord(const Call& call, store::Transaction& transaction, std::string answer = {});

// Reads the entry of RequestKey; nullopt: there is none, or it is damaged.
std::optional<controlplane::v1::RequestRecord> ReadRequestRecord(
    const std::optional<store::Entry>& entry);

}  // namespace rocegw::api
