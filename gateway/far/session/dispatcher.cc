// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/session/dispatcher.h"

#include <algorithm>
#include <cerrno>

#include "gateway/far/session/waiter.h"

namespace rocegw::far {
namespace {

std::vector<Slab> MakeSlabs(const Settings& settings) {
  return {settings.slabs, Slab(settings.merge.slab_bytes, !settings.disk_path.empty())};
}

}  // namespace

Dispatcher::Dispatcher(const Settings& settings, RegisteredMemory& memory,
                       std::unique_ptr<DiskCopy> disk, std::function<void()> donor_failed)
    : settings_(settings),
      slab_bytes_(settings.merge.slab_bytes),
      memory_(memory),
      donor_failed_(std::move(donor_failed)),
      disk_(disk != nullptr ? std::make_unique<DiskPath>(std::move(disk)) : nullptr),
      slabs_(MakeSlabs(settings)),
      links_(settings.donors.size()),
      domains_(settings.Domains()),
      reads_(settings.merge),
      writes_(settings.merge),
      admission_(settings.window_bytes) {
  for (size_t donor = 0; donor < links_.size(); donor++) {
    links_[donor].named = settings.donors[donor];
  }
}

// Requests ---------------------------------------------------------------------------------------

int Dispatcher::Submit(Direction direction, uint64_t offset, uint8_t* buffer, uint64_t length,
                       rocegw_memory_done done, void* argument, Limit limit) {
  if (length == 0 || offset > size() || length > size() - offset) return -EINVAL;
  uint32_t device = 0;
  {
    const std::lock_guard lock(mutex_);
    const bool full = queued_bytes_ != 0 && queued_bytes_ + length > settings_.most_queued_bytes;
    if (full && limit == Limit::kApplies) return -EAGAIN;
    queued_bytes_ += length;
    device = device_number_;
    (direction == Direction::kRead ? counts_.read_requests : counts_.write_requests)++;
    (direction == Direction::kRead ? counts_.read_bytes : counts_.write_bytes) += length;
  }
  auto* request = new Request;
  request->done = done;
  request->argument = argument;
  request->length = length;
  bool staged = true;
  if (memory_.IsInPool(buffer, length)) {
    staged = false;
  } else if (length > settings_.copy_limit_bytes) {
    request->registration = memory_.Register(buffer, length);
    staged = request->registration.mr == nullptr;
  }
  std::vector<Part> parts;
  for (uint64_t at = 0; at < length;) {
    const uint64_t in_slab = slab_bytes_ - (offset + at) % slab_bytes_;
    const uint64_t bytes = std::min({length - at, in_slab, settings_.merge.most_bytes});
    Part part;
    part.offset = offset + at;
    part.length = static_cast<uint32_t>(bytes);
    part.staged = staged;
    part.buffer = buffer + at;
    part.request = request;
    parts.push_back(part);
    at += bytes;
  }
  request->parts_left = static_cast<uint32_t>(parts.size());
  {
    const std::lock_guard lock(mutex_);
    if (request->registration.mr != nullptr) counts_.registered_requests++;
    for (Part& part : parts) {
      part.staged = part.staged || device != device_number_;
      Queue(direction).Push(part);
    }
  }
  Drain(direction);
  return 0;
}

int Dispatcher::SubmitAndWait(Direction direction, uint64_t offset, uint8_t* buffer,
                              uint64_t length) {
  Waiter waiter;
  int error = 0;
  while ((error = Submit(direction, offset, buffer, length, &Waiter::OnDone, &waiter)) == -EAGAIN) {
    std::unique_lock lock(mutex_);
    less_queued_.wait(lock, [&] {
      return queued_bytes_ == 0 || queued_bytes_ + length <= settings_.most_queued_bytes;
    });
  }
  return error != 0 ? error : waiter.Wait();
}

void Dispatcher::WaitUntilIdle() {
  std::unique_lock lock(mutex_);
  less_queued_.wait(lock, [this] { return queued_bytes_ == 0; });
}

void Dispatcher::SetWindow(Admission::WindowHook hook, void* argument) {
  {
    const std::lock_guard lock(mutex_);
    admission_.SetHook(hook, argument);
  }
  Completed();
}

std::optional<Slab::Stretch> Dispatcher::NextData(uint64_t begin, uint64_t end, uint64_t most) {
  const std::lock_guard lock(mutex_);
  while (begin < end) {
    const uint64_t first = begin / slab_bytes_ * slab_bytes_;
    const auto found = slabs_[begin / slab_bytes_].NextData(begin - first, most);
    if (found && first + found->begin >= end) break;
    if (found) {
      return Slab::Stretch{std::max(begin, first + found->begin),
                           std::min(end, first + found->end)};
    }
    begin = first + slab_bytes_;
  }
  return std::nullopt;
}

void* Dispatcher::Allocate(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto offset = memory_.pool().Allocate(bytes);
  return offset ? memory_.pool_data() + *offset : nullptr;
}

void Dispatcher::Free(void* memory) {
  if (memory == nullptr) return;
  const std::lock_guard lock(mutex_);
  memory_.pool().Free(static_cast<uint64_t>(static_cast<uint8_t*>(memory) - memory_.pool_data()));
}

// Donors -----------------------------------------------------------------------------------------

void Dispatcher::AddDonor(uint32_t domain, const Settings::Donor& named) {
  const std::lock_guard lock(mutex_);
  links_.emplace_back().named = named;
  domains_.push_back(domain);
}

void Dispatcher::LinkUp(uint32_t donor, std::unique_ptr<Connection> connection,
                        const Welcome& welcome) {
  const std::lock_guard lock(mutex_);
  DonorLink& link = links_[donor];
  link.connection = std::move(connection);
  link.credits = kSendDepth - 1;
  link.free_bytes = welcome.free_bytes;
  link.lease_seconds = welcome.lease_seconds;
  link.draining = false;  // a draining donor refuses new sessions
  link.leases_asked = 0;
  link.renewals_asked = 0;
  link.state = DonorLink::State::kUp;
  link.proof = welcome.proof;
  link.refusals = 0;
  unheard_ = false;
  placement_++;
  if (link.suspended) EndSuspensionLocked(donor, welcome.continued);
}

void Dispatcher::CountQuestion(DonorLink& link, MessageType type, int change) {
  const std::lock_guard lock(mutex_);
  if (type == MessageType::kLease) link.leases_asked += change;
  if (type == MessageType::kRenew) link.renewals_asked += change;
}

std::optional<uint32_t> Dispatcher::TakeAnswer(const Connection& connection,
                                               const std::optional<Message>& message) {
  const std::lock_guard lock(mutex_);
  for (uint32_t donor = 0; donor < links_.size(); donor++) {
    DonorLink& link = links_[donor];
    if (link.connection.get() != &connection) continue;
    if (link.state != DonorLink::State::kUp) return std::nullopt;
    if (link.TakeAnswer(message)) return donor;
    counts_.donor_faults++;
    FailLinkLocked(donor, false);
  }
  return std::nullopt;
}

void Dispatcher::FailLink(uint32_t donor, bool timed_out) {
  const std::lock_guard lock(mutex_);
  if (links_[donor].state == DonorLink::State::kUp) FailLinkLocked(donor, timed_out);
}

void Dispatcher::FailLinkLocked(uint32_t donor, bool timed_out) {
  DonorLink& link = links_[donor];
  link.state = DonorLink::State::kEnding;
  link.ending_since = Clock::now();
  counts_.donors_lost++;
  if (timed_out) counts_.donor_timeouts++;
  LoseDonorLocked(donor);
}

void Dispatcher::LoseDonorLocked(uint32_t donor) {
  placement_++;
  for (Slab& slab : slabs_) {
    const uint64_t before = slab.lost_pages();
    slab.DonorLost(donor);
    lost_ever_ += slab.lost_pages() - before;
  }
}

void Dispatcher::CheckLinks(
    const std::function<std::unique_lock<std::mutex>(uint32_t donor)>& quiet) {
  CheckSuspension();
  const auto timeout = std::chrono::milliseconds(settings_.timeout_ms);
  for (uint32_t donor = 0; donor < links_.size(); donor++) {
    std::unique_ptr<Connection> ended;
    std::vector<Transfer*> abandoned;
    Connection* abort = nullptr;
    {
      const std::lock_guard lock(mutex_);
      DonorLink& link = links_[donor];
      const Clock::time_point now = Clock::now();
      if (link.state == DonorLink::State::kUp && link.oldest != nullptr &&
          now - link.oldest->sent > timeout) {
        FailLinkLocked(donor, true);
      }
      if (link.state != DonorLink::State::kEnding) continue;
      abort = link.connection.get();
      // Completions of messages name memory of the connection.
      const bool idle = abort->idle() || now - link.ending_since > timeout;
      if (link.oldest == nullptr && link.unposted == 0 && idle) {
        ended = std::move(link.connection);
        link.state = DonorLink::State::kDown;
      }
    }
    abort->Abort();
    if (ended != nullptr) {
      // Its message buffers may be among completions that the poller is handling.
      const auto lock = quiet(donor);
      ended.reset();
      continue;
    }
    DonorLink& link = links_[donor];
    if (Clock::now() - link.ending_since < timeout) continue;
    abort->DestroyQueuePair();
    {
      const auto polling = quiet(donor);
      const std::lock_guard lock(mutex_);
      // Transfers that are being posted fail by themselves.
      if (link.unposted != 0) continue;
      for (Transfer* transfer = link.oldest; transfer != nullptr; transfer = transfer->next) {
        abandoned.push_back(transfer);
      }
    }
    for (Transfer* transfer : abandoned) OnTransfer(*transfer, false);
    Completed();
  }
}

void Dispatcher::AddStatistics(rocegw_memory_statistics& statistics) {
  const std::lock_guard lock(mutex_);
  statistics = counts_;
  statistics.doorbells = doorbells_;
  statistics.window_refusals = admission_.refusals();
  statistics.peak_in_flight_bytes = admission_.peak();
  statistics.in_flight_bytes = admission_.in_flight();
  statistics.copy_limit_bytes = settings_.copy_limit_bytes;
  if (disk_ != nullptr) {
    const DiskCopy::Counts disk = disk_->copy().GetCounts();
    statistics.disk_copies = 1;
    statistics.disk_up = IsDiskUp() ? 1 : 0;
    statistics.disk_queued_bytes = disk.queued_bytes;
    statistics.disk_written_bytes = disk.written_bytes;
    statistics.disk_read_bytes = disk.read_bytes;
    statistics.disk_errors = disk.errors;
    statistics.disk_timeouts = disk.hangs;
    statistics.disk_waits = disk_->waits().count;
    statistics.disk_wait_ns = static_cast<uint64_t>(disk_->waits().time.count());
  }
  statistics.donors_suspended = suspended_;
  for (const DonorLink& link : links_) {
    statistics.donors_connected += link.state == DonorLink::State::kUp ? 1 : 0;
    statistics.donors_draining += link.state == DonorLink::State::kUp && link.draining ? 1 : 0;
  }
  statistics.slabs = slabs_.size();
  for (const Slab& slab : slabs_) {
    statistics.slabs_degraded += slab.live() < settings_.replicas ? 1 : 0;
    statistics.slabs_unserved += slab.live() == 0 ? 1 : 0;
    statistics.slabs_shared_domain += SharesDomain(slab) ? 1 : 0;
    statistics.lost_pages += slab.lost_pages();
    statistics.disk_missing_pages += slab.off_disk_pages();
    if (disk_ != nullptr && !slab.IsDiskWhole()) statistics.disk_flush_fails = 1;
  }
  if (statistics.disk_copies != statistics.disk_up) statistics.disk_flush_fails = 1;
}

}  // namespace rocegw::far
