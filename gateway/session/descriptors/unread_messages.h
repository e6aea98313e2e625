// SPDX-License-Identifier: Apache-2.0
// Messages that a program left unread in its connection. The connection's input is shut down, so
// none is added. One thread at a time for a socket.
#pragma once

namespace rocegw::session {

// Returns true if a message waits, and leaves it there.
bool HasUnreadMessage(int socket);
// Receives all messages and closes their descriptors, which may block. Returns false if the kernel
// refused to receive one.
bool DiscardUnreadMessages(int socket);

}  // namespace rocegw::session
