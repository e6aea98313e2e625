// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/attach_gate.h"

#include <sys/epoll.h>

#include <cerrno>
#include <utility>
#include <vector>

namespace rocegw::session {
namespace {

std::string Describe(const Peer& peer) {
  return peer.comm + " (pid " + std::to_string(peer.pid) + ", uid " + std::to_string(peer.uid) +
         ")";
}

// Returns true if the process is still the one that the agent was asked about.
bool IsTheSame(const Peer& peer) {
  return peer.pid == 0 ||
         (ProcessStartTime(peer.pid) == peer.start_time && ProcessCgroup(peer.pid) == peer.cgroup);
}

}  // namespace

AttachGate::AttachGate(Services& services, Admit admit, Refuse refuse)
    : services_(services),
      admit_(std::move(admit)),
      refuse_(std::move(refuse)),
      held_(static_cast<uint64_t>(WallClockNs()), services.options.verdict_within) {}

AttachGate::~AttachGate() {
  services_.loop.Cancel(timer_);
  for (const auto& [id, watches] : watches_) {
    services_.loop.Unwatch(watches.socket);
    services_.loop.Unwatch(watches.process);
  }
}

void AttachGate::Hold(ProgramConnection socket, tenant::Pool& pool, const std::string& path,
                      Peer peer) {
  HeldAttach attach{pool.name(), pool.id(), path, std::move(socket), std::move(peer), {}, false};
  const uint64_t added = held_.Add(std::move(attach), ControlLoop::Now());
  Watch(added, EPOLLIN | EPOLLRDHUP);
  if (const uint64_t excess = held_.Excess()) RefuseExcess(excess);
  Rearm();
}

void AttachGate::RefuseExcess(uint64_t id) {
  Forget(id);
  HeldAttach attach = std::move(*held_.Take(id));
  tenant::Pool* const pool = services_.pools.FindPool(attach.pool);
  if (pool != nullptr && pool->id() == attach.pool_id) {
    pool->CountIdentityRefused();
    pool->CountAttach(tenant::AttachOutcome::kFailed);
  }
  services_.reports.Tell("IDENTITY_DENIED", attach.pool, "many",
                         attach.pool + ": attach of " + Describe(attach.peer) +
                             " refused, too many of the pool wait for the agent's verdict");
  refuse_(std::move(attach.socket), EACCES, "too many programs wait for an answer");
}

void AttachGate::Watch(uint64_t id, uint32_t events) {
  const HeldAttach& attach = *held_.Find(id);
  Watches& watches = watches_[id];
  watches.socket = services_.loop.Watch(attach.socket.get(), events,
                                        [this, id](uint32_t happened) { OnSocket(id, happened); });
  if (attach.peer.process.valid()) {
    watches.process = services_.loop.Watch(attach.peer.process.get(), EPOLLIN,
                                           [this, id](uint32_t) { Gone(id); });
  }
}

void AttachGate::OnSocket(uint64_t id, uint32_t events) {
  if ((events & ~uint32_t{EPOLLIN}) != 0) return Gone(id);
  // Received messages stay unread; from now on only the end of the connection matters.
  Forget(id);
  const uint64_t greeted = held_.Greeted(id);
  // An agent that was told may have answered already.
  if (held_.Find(greeted) != nullptr) Watch(greeted, EPOLLRDHUP);
  Rearm();
}

void AttachGate::List(uint64_t after, Duration wait, HeldAttaches::Told told) {
  const TimePoint now = ControlLoop::Now();
  held_.Tell(after, now + wait, std::move(told), now);
  Rearm();
}

bool AttachGate::Answer(uint64_t id, bool allowed, const std::string& reason,
                        const tenant::SlotLimits& limits) {
  auto attach = held_.Take(id);
  if (!attach) return false;
  Forget(id);
  tenant::Pool* const pool = services_.pools.FindPool(attach->pool);
  if (!allowed) {
    Deny(std::move(*attach), reason.empty() ? "the agent denies it" : reason);
  } else if (pool == nullptr || pool->id() != attach->pool_id) {
    Deny(std::move(*attach), "the pool is not in the configuration any more");
  } else if (!IsTheSame(attach->peer)) {
    Deny(std::move(*attach), "the process is not what the agent was asked about any more");
  } else {
    attach->limits = limits;
    admit_(std::move(*attach), *pool);
  }
  return true;
}

void AttachGate::Deny(HeldAttach attach, const std::string& reason, tenant::AttachOutcome outcome) {
  tenant::Pool* const pool = services_.pools.FindPool(attach.pool);
  if (pool != nullptr && pool->id() == attach.pool_id) {
    pool->CountIdentityRefused();
    pool->CountAttach(outcome);
  }
  services_.reports.Tell(
      "IDENTITY_DENIED", attach.pool, attach.peer.comm,
      attach.pool + ": attach of " + Describe(attach.peer) + " refused: " + reason);
  refuse_(std::move(attach.socket), EACCES, reason);
}

void AttachGate::Forget(uint64_t id) {
  const auto known = watches_.find(id);
  if (known == watches_.end()) return;
  services_.loop.Unwatch(known->second.socket);
  services_.loop.Unwatch(known->second.process);
  watches_.erase(known);
}

void AttachGate::Gone(uint64_t id) {
  Forget(id);
  (void)held_.Take(id);
}

void AttachGate::Clear(const std::string& path) {
  std::vector<uint64_t> there;
  for (const auto& [id, watches] : watches_) {
    const HeldAttach* const attach = held_.Find(id);
    if (attach != nullptr && attach->path == path) there.push_back(id);
  }
  for (const uint64_t id : there) {
    Forget(id);
    Deny(std::move(*held_.Take(id)), "the socket is given to somebody else");
  }
}

void AttachGate::RefuseAll(int error, const std::string& reason) {
  while (!watches_.empty()) {
    const uint64_t id = watches_.begin()->first;
    Forget(id);
    HeldAttach attach = std::move(*held_.Take(id));
    tenant::Pool* const pool = services_.pools.FindPool(attach.pool);
    if (pool != nullptr && pool->id() == attach.pool_id)
      pool->CountAttach(tenant::AttachOutcome::kFailed);
    refuse_(std::move(attach.socket), error, reason);
  }
  Rearm();
}

void AttachGate::DropAll() {
  while (!watches_.empty()) Gone(watches_.begin()->first);
}

void AttachGate::OnDeadline() {
  timer_ = 0;
  const TimePoint now = ControlLoop::Now();
  held_.TellExpired(now);
  std::vector<HeldAttach> expired = held_.TakeExpired(now);
  // Watches must be removed before their descriptors are closed.
  std::vector<uint64_t> gone;
  for (const auto& [id, watches] : watches_) {
    if (held_.Find(id) == nullptr) gone.push_back(id);
  }
  for (const uint64_t id : gone) Forget(id);
  for (HeldAttach& attach : expired) {
    if (attach.greeted) {
      Deny(std::move(attach), "no verdict of the agent in time", tenant::AttachOutcome::kFailed);
    } else {
      refuse_(std::move(attach.socket), EACCES, "");
    }
  }
  Rearm();
}

void AttachGate::Rearm() {
  services_.loop.Cancel(std::exchange(timer_, 0));
  const TimePoint deadline = held_.deadline();
  if (deadline != kNever) timer_ = services_.loop.At(deadline, [this] { OnDeadline(); });
}

}  // namespace rocegw::session
