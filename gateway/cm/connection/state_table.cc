// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/connection/state_table.h"

#include <variant>

#include "gateway/cm/cm_id.h"
#include "gateway/cm/connection/handlers.h"

namespace rocegw::cm {
namespace {

// Row of the table, in the order of wire::CmBody; no state handles LAP and APR.
struct Row {
  const char* name = nullptr;
  Handler req = nullptr;
  Handler mra = nullptr;
  Handler rej = nullptr;
  Handler rep = nullptr;
  Handler rtu = nullptr;
  Handler dreq = nullptr;
  Handler drep = nullptr;
  Handler sidr_req = nullptr;
  Handler sidr_rep = nullptr;
};

constexpr Row kRows[kConnectionStates] = {
    {.name = "REQ not sent yet"},
    {.name = "REQ sent",  //
     .mra = OnDelayOfRequest,
     .rej = OnRejectWhileConnecting,
     .rep = OnReply},
    {.name = "REQ sent, peer asked for time",  //
     .mra = IgnoreRepetition,
     .rej = OnRejectWhileConnecting,
     .rep = OnReply},
    {.name = "REQ received",  //
     .req = OnRequestAgain,
     .rej = OnRejectWhileConnecting},
    {.name = "REP sent",  //
     .req = OnRequestAnswered,
     .mra = OnDelayOfReply,
     .rej = OnRejectAfterReply,
     .rtu = OnReadyToUse,
     .dreq = OnDisconnect},
    {.name = "REP sent, peer asked for time",  //
     .req = IgnoreRepetition,
     .mra = IgnoreRepetition,
     .rej = OnRejectAfterReply,
     .rtu = OnReadyToUse,
     .dreq = OnDisconnect},
    {.name = "REP received",  //
     .mra = IgnoreRepetition,
     .rej = OnRejectAfterReply,
     .rep = OnReplyAgain,
     .dreq = OnDisconnect},
    {.name = "established",  //
     .req = IgnoreRepetition,
     .mra = IgnoreRepetition,
     .rej = OnRejectEstablished,
     .rep = OnReplyEstablished,
     .rtu = IgnoreRepetition,
     .dreq = OnDisconnect},
    {.name = "DREQ sent",  //
     .rej = OnRejectDisconnecting,
     .rep = IgnoreRepetition,
     .rtu = IgnoreRepetition,
     .dreq = OnDisconnect,
     .drep = OnDisconnected},
    {.name = "timewait",  //
     .req = OnRequestStale,
     .rej = IgnoreRepetition,
     .rep = OnReplyStale,
     .rtu = IgnoreRepetition,
     .dreq = OnDisconnectAgain,
     .drep = IgnoreRepetition},
    {.name = "rejected",  //
     .req = OnRequestRejected,
     .mra = IgnoreRepetition,
     .rej = IgnoreRepetition,
     .rtu = OnReadyToUseRejected,
     .dreq = OnDisconnectAgain},
    {.name = "SIDR_REQ sent",  //
     .sidr_rep = OnSidrReply},
    {.name = "SIDR_REQ received",  //
     .sidr_req = IgnoreRepetition},
    {.name = "SIDR_REQ answered",  //
     .sidr_req = ResendAnswer},
};

constexpr Handler Row::*kColumns[] = {&Row::req,  &Row::mra,      &Row::rej,
                                      &Row::rep,  &Row::rtu,      &Row::dreq,
                                      &Row::drep, &Row::sidr_req, &Row::sidr_rep};
static_assert(std::size(kColumns) + 1 == std::variant_size_v<wire::CmBody>);

constexpr const char* kIdStates[] = {
    "idle",           "bound",     "resolving address", "address resolved",
    "route resolved", "listening", "connecting",        "disconnected"};

}  // namespace

Handler HandlerFor(ConnectionState state, size_t message) {
  if (state >= ConnectionState::kCount || message >= std::size(kColumns)) return nullptr;
  return kRows[static_cast<size_t>(state)].*kColumns[message];
}

const char* StateName(ConnectionState state) {
  return state < ConnectionState::kCount ? kRows[static_cast<size_t>(state)].name : "invalid";
}

const char* StateName(IdState state) { return kIdStates[static_cast<size_t>(state)]; }

}  // namespace rocegw::cm
