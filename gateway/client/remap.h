// SPDX-License-Identifier: Apache-2.0
// Moving the pages of a registered range onto memory that the daemon has mapped too, so that it
// reads and writes them directly. Only where the gateway allows it and only for memory where nobody
// can notice (docs/client.md); everything else is reached across processes, which is always right.
// Control path; any thread.
#pragma once

#include <cstdint>

#include "gateway/client/session.h"

namespace rocegw::client {

struct Region;

// The region that holds all of [address, address + length), made now if need be and allowed;
// nullptr: use the other way. The caller gets a reference.
Region* RemapForRegistration(Session* session, uint64_t address, uint64_t length);
void ReleaseRegion(Region* region);

uint32_t RegionHandle(const Region* region);
uint64_t RegionOffset(const Region* region, uint64_t address);

// For the hooks of madvise and mremap. Cheap question: was anything moved in this process?
bool AnyRegions();
// Calls visit(start, length) for each part of [start, end) that shows moved pages; the last error
// of a visit goes to *result. False: there was none.
bool ForEachRemappedPiece(uint64_t start, uint64_t end, int (*visit)(uint64_t, uint64_t),
                          int* result);

// Handlers of fork. A child gets the content as its own: what it writes there must not appear in
// the parent. What the parent and the gateway write afterwards may still appear in pages that the
// child has not written to.
void LockRegions();
void UnlockRegions();
void MakeRegionsPrivateInChild();

}  // namespace rocegw::client
