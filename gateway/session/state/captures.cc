// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/state/captures.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace rocegw::session {
void Captures::SetQueues(port::CaptureTaps& taps, std::vector<CaptureQueues> queues) {
  taps_ = &taps;
  queues_ = std::move(queues);
}

std::vector<wire::Gid> Captures::AddressesOf(const std::string& scope) {
  std::vector<wire::Gid> addresses;
  services_.pools.ForEachPool([&](const tenant::Pool& pool) {
    if (!tenant::IsInScope(scope, pool.name())) return;
    const auto& own = pool.settings().addresses;
    addresses.insert(addresses.end(), own.begin(), own.end());
  });
  return addresses;
}

bool Captures::Exists(const std::string& scope) {
  bool found = false;
  services_.pools.ForEachPool(
      [&](const tenant::Pool& pool) { found = found || tenant::IsInScope(scope, pool.name()); });
  return found;
}

size_t Captures::FreePlace(const std::string& pool) const {
  // The first tap is never used for a tenant.
  size_t free = port::kCaptureTaps;
  for (size_t i = pool.empty() ? 0 : 1; i < running_.size(); ++i) {
    if (running_[i].sink == nullptr) {
      free = std::min(free, i);
    } else if (!pool.empty() && tenant::TenantOf(running_[i].pool) == tenant::TenantOf(pool)) {
      return port::kCaptureTaps;
    }
  }
  return free;
}

void Captures::Start(const CaptureOrder& order, std::shared_ptr<port::CaptureSink> sink,
                     std::function<void(const Status&)> started) {
  if (taps_ == nullptr) return started({ENOTSUP, "this gateway's ports cannot be captured"});
  if (!order.pool.empty() && !Exists(order.pool))
    return started({ENOENT, order.pool + " is not on this gateway"});
  const size_t place = FreePlace(order.pool);
  if (place == port::kCaptureTaps) {
    return started(
        {EBUSY, order.pool.empty()
                    ? "four captures are running already"
                    : "a capture of this tenant, or three of others, are running already"});
  }
  Running& running = running_[place];
  running = {order.pool, std::move(sink), ++last_number_};
  port::CaptureFilter& filter = (*taps_)[place].filter();
  filter.Reset(!order.pool.empty(), order.qpn, order.peer);
  if (!order.pool.empty()) {
    filter.SetAddresses(AddressesOf(order.pool));
    list_qps_(order.pool, [&](Qpn qpn) { filter.Add(qpn); });
  }
  services_.reports.Say(Severity::kInfo,
                        "capture begins" + (order.pool.empty() ? "" : " of " + order.pool));
  port::CaptureConfig bounds = order.bounds;
  bounds.ended = [this, place, number = running.number] {
    (void)services_.loop.Post([this, place, number] { Ended(place, number); });
  };
  UseQueues(true, [this, place, number = running.number, bounds, started = std::move(started)] {
    Running& now = running_[place];
    // Its reader has gone meanwhile.
    if (now.number != number || now.sink == nullptr) return;
    const Status status = (*taps_)[place].Start(now.sink, bounds);
    if (!status.ok()) now = {};
    started(status);
  });
}

void Captures::UseQueues(bool recording, std::function<void()> done) {
  services_.workers.Broadcast(
      [&](WorkerIndex worker) {
        const CaptureQueues& queues = queues_[worker];
        return worker::UsePorts{recording ? queues.recording : queues.plain};
      },
      [done = std::move(done)](const worker::ControlReply&) {
        if (done) done();
      });
}

void Captures::Abort(const std::shared_ptr<port::CaptureSink>& sink) {
  for (size_t i = 0; i < running_.size(); ++i) {
    if (running_[i].sink == sink) Free(i);
  }
}

void Captures::Ended(size_t place, uint64_t number) {
  if (running_[place].sink != nullptr && running_[place].number == number) Free(place);
}

void Captures::Free(size_t place) {
  running_[place].sink->Abort();
  const port::CaptureSummary summary = (*taps_)[place].Stop();
  services_.reports.Say(Severity::kInfo, "capture ends after " + std::to_string(summary.packets) +
                                             " packets, " + std::to_string(summary.missed) +
                                             " missed");
  running_[place] = {};
  const bool none = std::all_of(running_.begin(), running_.end(),
                                [](const Running& one) { return one.sink == nullptr; });
  if (none) UseQueues(false, {});
}

void Captures::StopAll() {
  for (size_t i = 0; i < running_.size(); ++i) {
    if (running_[i].sink != nullptr) Free(i);
  }
}

void Captures::QpAdded(const std::string& pool, Qpn qpn) {
  for (size_t i = 0; i < running_.size(); ++i) {
    if (running_[i].sink != nullptr && tenant::IsInScope(running_[i].pool, pool))
      (*taps_)[i].filter().Add(qpn);
  }
}

void Captures::QpRemoved(const std::string& pool, Qpn qpn) {
  for (size_t i = 0; i < running_.size(); ++i) {
    if (running_[i].sink != nullptr && tenant::IsInScope(running_[i].pool, pool))
      (*taps_)[i].filter().Remove(qpn);
  }
}

void Captures::PoolsChanged() {
  for (size_t i = 0; i < running_.size(); ++i) {
    if (running_[i].sink != nullptr && !running_[i].pool.empty())
      (*taps_)[i].filter().SetAddresses(AddressesOf(running_[i].pool));
  }
}

}  // namespace rocegw::session
