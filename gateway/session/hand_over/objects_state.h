// SPDX-License-Identifier: Apache-2.0
// State of a session's objects for a gateway that takes over (gateway/hand_over/state_stream.h).
// The reader makes the objects as commands make them: it takes amounts from the pool, blocks of the
// segment, doorbells and keys, and counts users. Descriptors travel apart, by name. Control thread.
#pragma once

#include <string>

#include "gateway/base/inherited_fds.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/session/client_session.h"

namespace rocegw::session {

// Returns the name of a descriptor of the session (FdKind).
std::string FdName(SessionId session, uint32_t number);
std::string EventsName(SessionId session, char channel, uint32_t handle);

void HandOverText(hand_over::StateStream& state, std::string& text);

// Hands over the place of a block and takes it from the reader's segment. `bytes`: what its user
// needs; 0: the block is not used.
void HandOverBlock(hand_over::StateStream& state, shm::Segment& segment, shm::Writer writer,
                   uint64_t bytes, shm::Block& block);

// Names of event channels' descriptors.
inline constexpr char kAsyncChannel = 'a';
inline constexpr char kCompletionChannel = 'c';
inline constexpr char kCmChannel = 'm';

// Hands over all objects of a session. `version`: of the session's record. `inherited`:
// descriptors, for a reader.
void HandOverObjects(hand_over::StateStream& state, ClientSession& session, uint16_t version,
                     InheritedFds* inherited);
// Hands over what workers change of these objects; while they rest.
void HandOverShared(hand_over::StateStream& state, ClientSession& session);
void OfferObjects(const ClientSession& session, OfferedFds& fds);

}  // namespace rocegw::session
