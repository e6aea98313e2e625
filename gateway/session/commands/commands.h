// SPDX-License-Identifier: Apache-2.0
// Commands: one function per request type of the attach protocol. A command checks the request's
// values, acts, and answers exactly once: before it returns, or from the continuation of a message
// to the workers. Wrong handles and values are answered with an errno; a request that no correct
// library sends ends the session. Control thread.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/session/exchange/request.h"
#include "gateway/session/options.h"

namespace rocegw::session {

class ClientSession;
struct RemappedRegion;

using Command = void (*)(ClientSession& session, Request& request);

// The commands: type of the request (ROCEGW_MSG_...), and the function that carries it out.
#define ROCEGW_COMMANDS(X)                     \
  X(HELLO, Hello)                              \
  X(QUERY_DEVICE, QueryDevice)                 \
  X(QUERY_GIDS, QueryGids)                     \
  X(OPEN_CONTEXT, OpenContext)                 \
  X(CLOSE_CONTEXT, CloseContext)               \
  X(ALLOC_PD, AllocPd)                         \
  X(DEALLOC_PD, DeallocPd)                     \
  X(REG_MR, RegMr)                             \
  X(REREG_MR, ReregMr)                         \
  X(DEREG_MR, DeregMr)                         \
  X(ALLOC_MW, AllocMw)                         \
  X(DEALLOC_MW, DeallocMw)                     \
  X(TAKE_AHS, TakeAhs)                         \
  X(GIVE_AHS, GiveAhs)                         \
  X(CREATE_CHANNEL, CreateCompletionChannel)   \
  X(DESTROY_CHANNEL, DestroyCompletionChannel) \
  X(CREATE_CQ, CreateCq)                       \
  X(DESTROY_CQ, DestroyCq)                     \
  X(RESIZE_CQ, ResizeCq)                       \
  X(MODERATE_CQ, ModerateCq)                   \
  X(CREATE_QP, CreateQp)                       \
  X(MODIFY_QP, ModifyQp)                       \
  X(QUERY_QP, QueryQp)                         \
  X(MODIFY_EP, ModifyEndpoint)                 \
  X(QUERY_EP, QueryEndpoint)                   \
  X(DESTROY_QP, DestroyQp)                     \
  X(CREATE_REGION, CreateRegion)               \
  X(IMPORT_REGION, ImportRegion)               \
  X(IMPORT_DEVICE, ImportDevice)               \
  X(DESTROY_REGION, DestroyRegion)             \
  X(SET_MEMORY, SetMemory)                     \
  X(QUERY_ECE, QueryEce)                       \
  X(SET_ECE, SetEce)                           \
  X(OPEN_XRCD, OpenXrcd)                       \
  X(CLOSE_XRCD, CloseXrcd)                     \
  X(OPEN_QP, OpenQp)                           \
  X(ATTACH_MULTICAST, AttachMulticast)         \
  X(DETACH_MULTICAST, DetachMulticast)         \
  X(CREATE_PEER, CreatePeer)                   \
  X(DESTROY_PEER, DestroyPeer)                 \
  X(CREATE_SRQ, CreateSrq)                     \
  X(MODIFY_SRQ, ModifySrq)                     \
  X(QUERY_SRQ, QuerySrq)                       \
  X(DESTROY_SRQ, DestroySrq)                   \
  X(CREATE_GROUP, CreateGroup)                 \
  X(DESTROY_GROUP, DestroyGroup)               \
  X(CM_CREATE_CHANNEL, CmCreateChannel)        \
  X(CM_DESTROY_CHANNEL, CmDestroyChannel)      \
  X(CM_CREATE_ID, CmCreateId)                  \
  X(CM_DESTROY_ID, CmDestroyId)                \
  X(CM_BIND, CmBind)                           \
  X(CM_RESOLVE_ADDR, CmResolveAddr)            \
  X(CM_RESOLVE_ROUTE, CmResolveRoute)          \
  X(CM_LISTEN, CmListen)                       \
  X(CM_CONNECT, CmConnect)                     \
  X(CM_ACCEPT, CmAccept)                       \
  X(CM_REJECT, CmReject)                       \
  X(CM_ESTABLISH, CmEstablish)                 \
  X(CM_DISCONNECT, CmDisconnect)               \
  X(CM_INIT_QP_ATTR, CmInitQpAttr)             \
  X(CM_SET_OPTION, CmSetOption)                \
  X(CM_MIGRATE, CmMigrate)                     \
  X(CM_NOTIFY, CmNotify)                       \
  X(CM_JOIN, CmJoin)                           \
  X(CM_QUERY_ID, CmQueryId)                    \
  X(USE_RINGS, UseRings)

#define ROCEGW_DECLARE_COMMAND(type, function) \
  void function(ClientSession& session, Request& request);
ROCEGW_COMMANDS(ROCEGW_DECLARE_COMMAND)
#undef ROCEGW_DECLARE_COMMAND

#define ROCEGW_COMMAND_TYPE(type, function) ROCEGW_MSG_##type,
inline constexpr std::array kCommandTypes = {ROCEGW_COMMANDS(ROCEGW_COMMAND_TYPE)};
#undef ROCEGW_COMMAND_TYPE

// Returns nullptr for a type that this version does not know.
Command FindCommand(uint32_t type);

// Charges of a region in the order of RemappedRegion::charges.
using RegionCosts = std::array<std::pair<Resource, uint64_t>, 4>;
// Charges a region to the pool. Returns false after an answer to the request: a limit is reached.
bool TakeRegion(ClientSession& session, RemappedRegion& region, const RegionCosts& costs);

// Part of CreateQp for XRC_RECV queue pairs.
void CreateXrcTarget(ClientSession& session, const rocegw_create_qp& asked);

}  // namespace rocegw::session
