// SPDX-License-Identifier: Apache-2.0
// Handlers of the connection manager: one function per (situation, message) or command;
// state_table.cc lists which handler runs in which state. A handler returns kNone if the message
// was used or is a harmless repetition, else why it was ignored. It may destroy the connection that
// it was given. Commands return errno.
#pragma once

#include "gateway/cm/cm_command.h"
#include "gateway/cm/core.h"

namespace rocegw::cm {

using metrics::DropReason;

// active_side.cc
int StartConnect(Core& core, Id& id, const ConnectParams& param, Step& step);
// Sends the REQs that waited for discovery of this peer.
void SendHeldRequests(Core& core, const wire::Gid& peer, Step& step);
// Sends the REQs that waited for a slot at their listener.
void SendWaitingRequests(Core& core, Step& step);
int ConfirmEstablished(Core& core, Id& id, Step& step);
DropReason OnReply(Core& core, Connection& connection, const Inbound& in, Step& step);
DropReason OnReplyAgain(Core& core, Connection& connection, const Inbound& in, Step& step);
DropReason OnReplyEstablished(Core& core, Connection& connection, const Inbound& in, Step& step);
DropReason OnReplyStale(Core& core, Connection& connection, const Inbound& in, Step& step);
DropReason OnDelayOfRequest(Core& core, Connection& connection, const Inbound& in, Step& step);

// passive_side.cc
DropReason OnNewRequest(Core& core, const Inbound& in, Step& step);
// Handles the early requests for a new listener.
void OnListening(Core& core, const Id& listener, Step& step);
// Refuses early requests whose listener did not appear in time.
void OnEarlyDeadline(Core& core, Step& step);
DropReason OnRequestAgain(Core& core, Connection& connection, const Inbound& in, Step& step);
DropReason OnRequestAnswered(Core& core, Connection& connection, const Inbound& in, Step& step);
DropReason OnRequestStale(Core& core, Connection& connection, const Inbound& in, Step& step);
int AcceptRequest(Core& core, Id& id, const ConnectParams& param, Step& step);
DropReason OnReadyToUse(Core& core, Connection& connection, const Inbound& in, Step& step);
DropReason OnDelayOfReply(Core& core, Connection& connection, const Inbound& in, Step& step);
int NoteCommEstablished(Core& core, Id& id, Step& step);

// teardown.cc
DropReason OnDisconnect(Core& core, Connection& connection, const Inbound& in, Step& step);
DropReason OnDisconnectAgain(Core& core, Connection& connection, const Inbound& in, Step& step);
DropReason OnDisconnected(Core& core, Connection& connection, const Inbound& in, Step& step);
DropReason OnRejectWhileConnecting(Core& core, Connection& connection, const Inbound& in,
                                   Step& step);
DropReason OnRejectAfterReply(Core& core, Connection& connection, const Inbound& in, Step& step);
DropReason OnRejectEstablished(Core& core, Connection& connection, const Inbound& in, Step& step);
DropReason OnRejectDisconnecting(Core& core, Connection& connection, const Inbound& in, Step& step);
DropReason OnRequestRejected(Core& core, Connection& connection, const Inbound& in, Step& step);
DropReason OnReadyToUseRejected(Core& core, Connection& connection, const Inbound& in, Step& step);
int RejectRequest(Core& core, Id& id, const Reject& command, Step& step);
int DisconnectId(Core& core, Id& id, Step& step);
int FailQp(Core& core, Id& id, Step& step);
void DestroyAnyId(Core& core, Id& id, Step& step);
void OnConnectionDeadline(Core& core, Connection& connection, Step& step);

// sidr.cc
int StartSidr(Core& core, Id& id, const ConnectParams& param, Step& step);
DropReason OnNewSidrRequest(Core& core, const Inbound& in, Step& step);
DropReason OnSidrReply(Core& core, Connection& connection, const Inbound& in, Step& step);
int AcceptSidr(Core& core, Id& id, Connection& connection, const ConnectParams& param, Step& step);
void RejectSidr(Core& core, Connection& connection, const PrivateData& data, Step& step);

// Handlers for any state.
DropReason ResendAnswer(Core& core, Connection& connection, const Inbound& in, Step& step);
DropReason IgnoreRepetition(Core& core, Connection& connection, const Inbound& in, Step& step);

// id_commands.cc
int CreateNewId(Core& core, SessionId owner, CmHandle handle, const CreateId& command);
int SetIdOption(Core& core, Id& id, const SetOption& command);
int BindId(Core& core, Id& id, const Endpoint& address, bool automatic);
int StartResolve(Core& core, Id& id, const ResolveAddress& command, Step& step);
int FinishResolve(Core& core, Id& id, const AddressResolved& command, Step& step);
int ResolveIdRoute(Core& core, Id& id, Step& step);
int ListenOn(Core& core, Id& id, const Listen& command);
void OnIdDeadline(Core& core, Id& id, Step& step);

}  // namespace rocegw::cm
