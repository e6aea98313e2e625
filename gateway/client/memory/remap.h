// SPDX-License-Identifier: Apache-2.0
// What a program registers, and the decision about it: move its pages onto memory that the daemon
// has mapped too, so that it reads and writes them directly, or leave them, to be reached across
// processes, which is always right. Moved is only what the gateway allows and where nobody can
// notice (docs/user/memory.md); only whole pages inside of the registration, so that no bystander
// in the same page is shared; and only while it is registered. Control path; any thread.
#pragma once

#include <cstdint>

#include "gateway/client/session/session.h"

namespace rocegw::client {

struct Region;

// One registration; part of its memory region's object.
struct Registration {
  Registration* next;
  Registration** link;  // that leads here
  Session* session;
  uint64_t start;
  uint64_t end;
  bool written;    // the daemon may write there
  Region* region;  // whose pages it uses, nullptr: none
  uint32_t kept;   // enum rocegw_kept: why not
};

// Before the daemon is asked to register [start, start + length).
void BeginRegistration(Session* session, uint64_t start, uint64_t length, bool written,
                       Registration* registration);
// The same for an on-demand registration: its pages stay, whatever they are, since it must follow
// what the program maps there; and nobody else's move while it can write to them.
void ListRegistration(Session* session, uint64_t start, uint64_t length, bool written,
                      Registration* registration);
// The daemon does not want it with the region: it goes on without.
void LeaveRegion(Registration* registration);
// When the daemon has let go of it.
void EndRegistration(Registration* registration);

uint32_t RegionHandle(const Registration& registration);
uint64_t RegionOffset(const Registration& registration);

}  // namespace rocegw::client
