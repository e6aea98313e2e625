// SPDX-License-Identifier: Apache-2.0
// Gate of pools with `identity: REQUIRED`. An attach waits until the agent of this host confirms
// that the process may use the pool; after a timeout it is refused. The agent is asked once the
// client has sent a message, which stays unread meanwhile. When the verdict arrives the process is
// checked again: the verdict is about that process in that cgroup. Owner: the attach server,
// control thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

#include "gateway/session/attach/held_attaches.h"
#include "gateway/session/services.h"

namespace rocegw::session {

class AttachGate {
 public:
  using Admit = std::function<void(HeldAttach attach, tenant::Pool& pool)>;
  using Refuse =
      std::function<void(ProgramConnection socket, int error, const std::string& reason)>;

  AttachGate(Services& services, Admit admit, Refuse refuse);
  ~AttachGate();
  AttachGate(const AttachGate&) = delete;
  AttachGate& operator=(const AttachGate&) = delete;

  void Hold(ProgramConnection socket, tenant::Pool& pool, const std::string& path, Peer peer);

  // Calls `told` with the waiting attaches as soon as one has an id above `after`, at the latest
  // after `wait`.
  void List(uint64_t after, Duration wait, HeldAttaches::Told told);
  // Passes on a verdict. `limits`: of the programs at the attach socket together. Returns false if
  // the attach does not wait (any more).
  bool Answer(uint64_t id, bool allowed, const std::string& reason,
              const tenant::SlotLimits& limits = {});

  // Refuses the attaches that wait at this attach socket.
  void Clear(const std::string& path);

  // Ends all List calls with an empty result, now and from now on.
  void StopTelling() { held_.StopTelling(); }
  // Refuses all waiting attaches for a reason that is not the programs'.
  void RefuseAll(int error, const std::string& reason);
  // Closes all waiting attaches, because the gateway stops.
  void DropAll();
  size_t size() const { return held_.size(); }

 private:
  struct Watches {
    ControlLoop::WatchId socket = 0;
    ControlLoop::WatchId process = 0;
  };

  void Deny(HeldAttach attach, const std::string& reason,
            tenant::AttachOutcome outcome = tenant::AttachOutcome::kRefused);
  void RefuseExcess(uint64_t id);
  void Watch(uint64_t id, uint32_t events);
  void OnSocket(uint64_t id, uint32_t events);
  void Forget(uint64_t id);
  void Gone(uint64_t id);
  void OnDeadline();
  void Rearm();

  Services& services_;
  const Admit admit_;
  const Refuse refuse_;
  HeldAttaches held_;
  std::unordered_map<uint64_t, Watches> watches_;
  ControlLoop::TimerId timer_ = 0;
};

}  // namespace rocegw::session
