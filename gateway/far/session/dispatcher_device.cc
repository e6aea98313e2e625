// SPDX-License-Identifier: Apache-2.0
// Part of the dispatcher for the time between the end of this host's own device and the moment at
// which the session continues at its donors by another one.
#include <algorithm>
#include <chrono>

#include "gateway/far/session/dispatcher.h"

namespace rocegw::far {

void Dispatcher::DeviceLost() {
  const std::lock_guard lock(mutex_);
  counts_.device_losses++;
  SuspendLinksLocked();
}

void Dispatcher::SuspendLinks() {
  const std::lock_guard lock(mutex_);
  SuspendLinksLocked();
}

void Dispatcher::SuspendLinksLocked() {
  const Clock::time_point now = Clock::now();
  uint32_t seconds = UINT32_MAX;
  for (uint32_t donor = 0; donor < links_.size(); donor++) {
    DonorLink& link = links_[donor];
    if (link.state != DonorLink::State::kUp) continue;
    if (disk_ != nullptr || link.proof.session == 0) {
      FailLinkLocked(donor, false);
      continue;
    }
    link.state = DonorLink::State::kEnding;
    link.ending_since = now;
    link.suspended = true;
    suspended_++;
    seconds = std::min(seconds, link.lease_seconds);
  }
  if (seconds == UINT32_MAX) return;
  suspended_since_ = now;
  suspended_until_ = now + std::chrono::seconds(seconds);
}

bool Dispatcher::AreLinksDown() {
  const std::lock_guard lock(mutex_);
  return std::all_of(links_.begin(), links_.end(),
                     [](const DonorLink& link) { return link.state == DonorLink::State::kDown; });
}

void Dispatcher::DeviceChanged() {
  const std::lock_guard lock(mutex_);
  device_number_++;
  reads_.StageAll();
  writes_.StageAll();
  // Donors are connected one after the other.
  const auto longest = std::chrono::milliseconds(settings_.timeout_ms) +
                       std::chrono::milliseconds(settings_.connect_timeout_ms) * suspended_;
  suspended_until_ = std::min(suspended_until_, Clock::now() + longest);
}

bool Dispatcher::IsSuspended() {
  const std::lock_guard lock(mutex_);
  return suspended_ != 0;
}

Hello Dispatcher::HelloFor(uint32_t donor) {
  const std::lock_guard lock(mutex_);
  return {settings_.tenant, links_[donor].proof, !links_[donor].suspended, settings_.brief};
}

void Dispatcher::EndSuspensionLocked(uint32_t donor, bool continued) {
  links_[donor].suspended = false;
  suspended_--;
  // No request waits for the donors of an earlier process.
  if (suspended_ == 0 && counts_.device_losses != 0) {
    const auto stall = Clock::now() - suspended_since_;
    counts_.device_stall_ns +=
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(stall).count());
  }
  if (continued) return;
  counts_.donors_lost++;
  LoseDonorLocked(donor);
}

// Gives up donors where the session has not continued in time.
void Dispatcher::CheckSuspension() {
  const std::lock_guard lock(mutex_);
  // The placement of an earlier process stays as it is while nothing is known of its donors.
  if (suspended_ == 0 || unheard_ || Clock::now() < suspended_until_) return;
  for (uint32_t donor = 0; donor < links_.size(); donor++)
    if (links_[donor].suspended) EndSuspensionLocked(donor, false);
}

// Returns the parts of an operation to its queue: the donors that it was for are suspended. The
// device that their buffers may be registered with is gone. With the lock.
void Dispatcher::RepeatLater(const Operation& operation) {
  Plan plan = operation.plan;
  for (Part& part : plan.parts) part.staged = true;
  Queue(operation.direction).PutBack(plan);
}

}  // namespace rocegw::far
