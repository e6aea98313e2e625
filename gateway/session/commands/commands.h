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
#include "gateway/session/commands/request.h"
#include "gateway/session/options.h"

namespace rocegw::session {

class ClientSession;
struct RemappedRegion;

using Command = void (*)(ClientSession& session, Request& request);

// Returns nullptr for a type that this version does not know.
Command FindCommand(uint32_t type);

// commands_device.cc
void Hello(ClientSession& session, Request& request);
void SetMemory(ClientSession& session, Request& request);
void QueryDevice(ClientSession& session, Request& request);
void QueryGids(ClientSession& session, Request& request);
void OpenContext(ClientSession& session, Request& request);
void CloseContext(ClientSession& session, Request& request);
void CreateCompletionChannel(ClientSession& session, Request& request);
void DestroyCompletionChannel(ClientSession& session, Request& request);

// Charges of a region in the order of RemappedRegion::charges.
using RegionCosts = std::array<std::pair<Resource, uint64_t>, 4>;
// Charges a region to the pool. Returns false after an answer to the request: a limit is reached.
bool TakeRegion(ClientSession& session, RemappedRegion& region, const RegionCosts& costs);

// commands_memory.cc
void AllocPd(ClientSession& session, Request& request);
void DeallocPd(ClientSession& session, Request& request);
void RegMr(ClientSession& session, Request& request);
void TakeAhs(ClientSession& session, Request& request);
void GiveAhs(ClientSession& session, Request& request);
void ReregMr(ClientSession& session, Request& request);
void DeregMr(ClientSession& session, Request& request);
void CreateRegion(ClientSession& session, Request& request);
void ImportRegion(ClientSession& session, Request& request);
void ImportDevice(ClientSession& session, Request& request);
void DestroyRegion(ClientSession& session, Request& request);

// commands_window.cc
void AllocMw(ClientSession& session, Request& request);
void DeallocMw(ClientSession& session, Request& request);

// commands_cq.cc
void CreateCq(ClientSession& session, Request& request);
void ResizeCq(ClientSession& session, Request& request);
void ModerateCq(ClientSession& session, Request& request);
void DestroyCq(ClientSession& session, Request& request);

// commands_srq.cc
void CreateSrq(ClientSession& session, Request& request);
void ModifySrq(ClientSession& session, Request& request);
void QuerySrq(ClientSession& session, Request& request);
void DestroySrq(ClientSession& session, Request& request);

// commands_qp.cc
void CreateQp(ClientSession& session, Request& request);
void ModifyQp(ClientSession& session, Request& request);
void QueryQp(ClientSession& session, Request& request);
void DestroyQp(ClientSession& session, Request& request);
void QueryEce(ClientSession& session, Request& request);
void SetEce(ClientSession& session, Request& request);

// commands_xrc.cc
void OpenXrcd(ClientSession& session, Request& request);
void CloseXrcd(ClientSession& session, Request& request);
void OpenQp(ClientSession& session, Request& request);
// Part of CreateQp for XRC_RECV queue pairs.
void CreateXrcTarget(ClientSession& session, const rocegw_create_qp& asked);

// commands_multicast.cc
void AttachMulticast(ClientSession& session, Request& request);
void DetachMulticast(ClientSession& session, Request& request);

// commands_peer.cc
void CreatePeer(ClientSession& session, Request& request);
void DestroyPeer(ClientSession& session, Request& request);

// commands_group.cc
void CreateGroup(ClientSession& session, Request& request);
void DestroyGroup(ClientSession& session, Request& request);

// commands_cm.cc
void CmCreateChannel(ClientSession& session, Request& request);
void CmDestroyChannel(ClientSession& session, Request& request);
void CmCreateId(ClientSession& session, Request& request);
void CmDestroyId(ClientSession& session, Request& request);
void CmBind(ClientSession& session, Request& request);
void CmResolveAddr(ClientSession& session, Request& request);
void CmResolveRoute(ClientSession& session, Request& request);
void CmListen(ClientSession& session, Request& request);
void CmSetOption(ClientSession& session, Request& request);
void CmMigrate(ClientSession& session, Request& request);
void CmJoin(ClientSession& session, Request& request);
void CmQueryId(ClientSession& session, Request& request);

// commands_connect.cc
void CmConnect(ClientSession& session, Request& request);
void CmAccept(ClientSession& session, Request& request);
void CmReject(ClientSession& session, Request& request);
void CmEstablish(ClientSession& session, Request& request);
void CmDisconnect(ClientSession& session, Request& request);
void CmInitQpAttr(ClientSession& session, Request& request);
void CmNotify(ClientSession& session, Request& request);

}  // namespace rocegw::session
