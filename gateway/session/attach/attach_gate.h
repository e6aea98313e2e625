// SPDX-License-Identifier: Apache-2.0
// Pools with `identity: REQUIRED`: an attach is held until the agent of this host has said whether
// the process may have the pool, at most for a while; then it is refused. The agent is asked once
// the client has sent something; nothing of that is read meanwhile. A process is checked again when
// the verdict comes: it was about that process, in that cgroup. Owner: the attach server, control
// thread.
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
  using Refuse = std::function<void(ClientFd socket, int error, const std::string& reason)>;

  AttachGate(Services& services, Admit admit, Refuse refuse);
  ~AttachGate();
  AttachGate(const AttachGate&) = delete;
  AttachGate& operator=(const AttachGate&) = delete;

  void Hold(ClientFd socket, tenant::Pool& pool, const std::string& path, Peer peer);

  // Those that are held, when there is one that has come after `after`; `wait` at most.
  void List(uint64_t after, Duration wait, HeldAttaches::Told told);
  // False: it is not held (any more).
  bool Answer(uint64_t id, bool allowed, const std::string& reason);

  // Whoever is held at this attach socket is turned away.
  void Clear(const std::string& path);

  // Nobody is told any more; who waits is told that there is nothing.
  void StopTelling() { held_.StopTelling(); }
  // The gateway stops: all are let go.
  void DropAll();
  size_t size() const { return held_.size(); }

 private:
  struct Watches {
    ControlLoop::WatchId socket = 0;
    ControlLoop::WatchId process = 0;
  };

  void Deny(HeldAttach attach, const std::string& reason,
            tenant::AttachOutcome outcome = tenant::AttachOutcome::kRefused);
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
