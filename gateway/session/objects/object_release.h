// SPDX-License-Identifier: Apache-2.0
// Destruction of a session's objects: single ones, those of a context, or all at the end. Memory is
// freed only after every worker that could use it has confirmed that it does not. Owner: the
// session, control thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "gateway/base/ids.h"
#include "gateway/session/objects/join.h"
#include "gateway/session/objects/objects.h"

namespace rocegw::session {

class AsyncEvents;
class Captures;
class ClientMemory;
class Doorbells;
class ReadyReserve;
class SessionQuota;
class SessionSegment;
struct Services;

class ObjectRelease {
 public:
  // Parts that objects are made of; all of them outlive this.
  struct Parts {
    Services& services;
    Captures& captures;
    Objects& objects;
    SessionQuota& quota;
    SessionSegment& segment;
    Doorbells& doorbells;
    ClientMemory& memory;
    AsyncEvents& async_events;
    ReadyReserve* reserve;  // nullptr: none
  };
  ObjectRelease(SessionId id, const Parts& parts) : id_(id), to_(parts) {}

  // Free an object after a destroy command or a failed create; all workers have released it.
  void FreeQp(uint32_t handle);
  void FreeCq(uint32_t handle);
  void FreeSrq(uint32_t handle);
  void FreeXrcd(uint32_t handle);
  void FreeMr(uint32_t handle);
  void FreeMw(uint32_t handle);
  void FreePeer(uint32_t handle);
  void FreeGroup(uint32_t handle);
  void FreePd(uint32_t handle);
  void FreeRegion(uint32_t handle);
  // Returns the id to the reserve, with what it was charged.
  void FreeCmId(std::unique_ptr<CmId> id);

  // Unlinks and frees a queue pair. If other sessions have it open too, only this session's
  // reference goes.
  void DropQp(uint32_t handle, std::function<void(uint32_t events)> done);
  // Removes the session from the domain. `done`: workers have unlinked what no session has open.
  void LeaveXrcd(Xrcd& xrcd, std::function<void()> done);
  // Unlinks and frees a context with all its objects.
  void CloseContext(uint32_t context, std::function<void()> done);

  // At the session's end: frees connection ids; tells the workers to unlink all other objects,
  // `join` being released when they have answered; then frees those.
  void DropCmIds();
  void UnlinkAll(const Join& join) { UnlinkObjectsOf(0, join); }
  void FreeAll();

 private:
  // Removes the session's reference to an XRC_RECV queue pair. Returns true if it was the last one:
  // workers must unlink the queue pair.
  bool LetGoOfTarget(uint32_t handle);
  // `context` 0: all contexts.
  void UnlinkObjectsOf(uint32_t context, const Join& join);
  void FreeObjectsOf(uint32_t context);

  const SessionId id_;
  const Parts to_;
};

}  // namespace rocegw::session
