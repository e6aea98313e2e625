// SPDX-License-Identifier: Apache-2.0
// Donors of a shared block pool: joining them, giving them up, joining them again, and leaving
// those that are no longer named.
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gateway/base/errno_status.h"
#include "gateway/far/shared_pool/shared_pool.h"

namespace rocegw::far {
namespace {

constexpr auto kTick = std::chrono::milliseconds(50);
constexpr auto kFirstPause = std::chrono::milliseconds(100);
constexpr auto kLongestPause = std::chrono::milliseconds(5000);
// The device reports what it has given up itself a little later than the timeout.
constexpr auto kGrace = std::chrono::milliseconds(500);
// Commands that a request has under way at a donor: value, use, and removal of an older value.
constexpr uint32_t kMostCommands = 3;
// Requests choose their donors a little before they begin.
constexpr auto kLeaveAfter = std::chrono::milliseconds(1000);
// Donors that a process may meet in its life, under changing addresses.
constexpr size_t kMostLinks = 1024;

uint64_t RoundUp(uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

}  // namespace

SharedPool::SharedPool(SharedPoolSettings settings)
    : settings_(std::move(settings)), secret_(settings_.secret), poller_(PollPolicy{}) {
  links_.resize(settings_.donors.size());
  for (size_t number = 0; number < links_.size(); number++) {
    links_[number].donor = settings_.donors[number];
  }
}

StatusOr<std::unique_ptr<SharedPool>> SharedPool::Open(SharedPoolSettings settings) {
  std::unique_ptr<SharedPool> pool(new SharedPool(std::move(settings)));
  if (Status status = pool->Start(); !status.ok()) return status;
  return pool;
}

SharedPool::~SharedPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_restoring_ = true;
    changed_.notify_all();
  }
  if (restorer_.joinable()) restorer_.join();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return counts_.in_flight == 0; });
    stop_ = true;
    changed_.notify_all();
  }
  if (joiner_.joinable()) joiner_.join();
  if (caretaker_.joinable()) caretaker_.join();
  for (Link& link : links_) link.path.reset();
  poller_.Stop();
  if (mr_ != nullptr) ibv_dereg_mr(mr_);
  if (memory_ != nullptr) munmap(memory_, memory_bytes_);
  if (pd_ != nullptr) ibv_dealloc_pd(pd_);
}

Status SharedPool::Start() {
  Status status{ENODEV, "no donor"};
  bool any = false;
  for (uint32_t number = 0; number < links_.size(); number++) {
    status = Join(number);
    if (status.error() == EACCES || status.error() == EINVAL) return status;
    any = any || status.ok();
  }
  if (!any) return status;
  caretaker_ = std::thread([this] { TakeCare(); });
  joiner_ = std::thread([this] { JoinAgain(); });
  if (settings_.replicas > 1) restorer_ = std::thread([this] { RestoreReplicas(); });
  return OkStatus();
}

// The first donor that is found says which device is used.
Status SharedPool::OpenDevice(ibv_context* context) {
  ibv_device_attr device{};
  if (ibv_query_device(context, &device) != 0) return ErrnoStatus("no device attributes");
  if (pd_ == nullptr) pd_ = ibv_alloc_pd(context);
  if (pd_ == nullptr) return ErrnoStatus("no protection domain");
  const auto limit = static_cast<uint32_t>(std::max(device.max_qp_wr, 1));
  resources_.pd = pd_;
  resources_.depth = std::min(settings_.most_requests * kMostCommands * 2, limit);
  resources_.timeout_ms = settings_.timeout_ms;
  const size_t links = settings_.donors_change ? kMostDonors : settings_.donors.size();
  const auto entries = static_cast<uint32_t>(
      std::min<uint64_t>(uint64_t{resources_.depth} * links + 16,
                         static_cast<uint64_t>(std::max(device.max_cqe, 16))));
  poller_.Stop();  // the poller of a try that failed
  Status status = poller_.Start(
      context, static_cast<int>(entries),
      [this](const ibv_wc* completions, size_t count) { OnCompletions(completions, count); });
  if (status.ok()) resources_.cq = poller_.cq();
  return status;
}

// Memory of all slots, when the size of blocks is known.
Status SharedPool::MakeSlots(uint64_t block_bytes) {
  const uint64_t value_bytes = RoundUp(block_bytes);
  const uint64_t slot_bytes = value_bytes + RoundUp(kMostReplicas * sizeof(StepBuffers));
  memory_bytes_ = settings_.most_requests * slot_bytes;
  void* const memory =
      mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return ErrnoStatus("no memory for transfers");
  mr_ = ibv_reg_mr(pd_, memory, memory_bytes_, IBV_ACCESS_LOCAL_WRITE);
  if (mr_ == nullptr) {
    Status status = ErrnoStatus("no memory region for transfers");
    munmap(memory, memory_bytes_);
    return status;
  }
  memory_ = static_cast<uint8_t*>(memory);
  slots_ = std::vector<Slot>(settings_.most_requests);
  for (uint32_t number = 0; number < slots_.size(); number++) {
    uint8_t* const begin = memory_ + number * slot_bytes;
    slots_[number].value = begin;
    for (uint32_t attempt = 0; attempt < kMostReplicas; attempt++) {
      slots_[number].buffers[attempt] =
          new (begin + value_bytes + attempt * sizeof(StepBuffers)) StepBuffers;
    }
    free_slots_.push_back(number);
  }
  block_bytes_ = block_bytes;
  return OkStatus();
}

Status SharedPool::Join(uint32_t number) {
  Link& link = [this, number]() -> Link& {
    const std::lock_guard lock(mutex_);
    return links_[number];
  }();
  const auto deadline = Clock::now() + std::chrono::milliseconds(settings_.connect_timeout_ms);
  auto resolved = std::make_unique<Connection>();
  if (Status status = resolved->Resolve(link.donor.host, link.donor.port, deadline); !status.ok()) {
    return status;
  }
  if (resources_.cq == nullptr) {
    if (Status status = OpenDevice(resolved->context()); !status.ok()) return status;
  }
  auto joined = JoinPool(std::move(resolved), link.donor.host, link.donor.port, resources_, secret_,
                         settings_.path, deadline);
  if (!joined.ok()) return joined.status();
  const TableShape& shape = joined->path->grant().shape;
  if (block_bytes_ == 0) {
    if (shape.block_bytes == 0 || shape.block_bytes > ROCEGW_MEMORY_MOST_BLOCK_BYTES) {
      return {EINVAL, "the donor has blocks of no usual size"};
    }
    if (Status status = MakeSlots(shape.block_bytes); !status.ok()) return status;
  }
  if (shape.block_bytes != block_bytes_) {
    return {EINVAL, link.donor.host + " has blocks of another size than the other donors"};
  }
  joined->path->SetLocalKey(mr_->lkey);
  const std::lock_guard lock(mutex_);
  link.path = std::move(joined->path);
  link.identity = joined->identity;
  link.epoch++;
  link.state = LinkState::kUp;
  link.pause = {};
  changed_.notify_all();
  return OkStatus();
}

void SharedPool::FailLocked(uint32_t number, AttemptIds& ready) {
  Link& link = links_[number];
  if (link.state != LinkState::kUp) return;
  link.state = LinkState::kEnding;
  changed_.notify_all();
  link.ending_since = Clock::now();
  counts_.donors_lost++;
  link.path->Abort();
  for (const AttemptId id : std::exchange(link.waiting, {})) {
    Attempt& attempt = AttemptOf(id);
    attempt.waits = false;
    attempt.failed = true;
    attempt.posted = attempt.commands.size();
    if (attempt.pending == 0) ready.push_back(id);
  }
}

// A donor whose commands do not complete in time is lost.
void SharedPool::CheckTimeouts() {
  AttemptIds ready;
  {
    const std::lock_guard lock(mutex_);
    const auto oldest = Clock::now() - std::chrono::milliseconds(settings_.timeout_ms) - kGrace;
    for (Slot& slot : slots_) {
      for (Attempt& attempt : slot.attempts) {
        if ((attempt.pending != 0 || attempt.waits) && attempt.since < oldest) {
          FailLocked(attempt.link, ready);
        }
      }
    }
  }
  AdvanceAll(ready);
}

// Destroys paths whose commands have all completed, or have not although they were aborted.
void SharedPool::EndPaths() {
  AttemptIds ready;
  {
    // No completion is being handled while a path is destroyed.
    const std::lock_guard quiet(poller_.quiet());
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    for (uint32_t number = 0; number < links_.size(); number++) {
      Link& link = links_[number];
      if (link.state != LinkState::kEnding) continue;
      const bool waited =
          now - link.ending_since > std::chrono::milliseconds(settings_.timeout_ms) + kGrace;
      if (link.posted != 0 && !waited) continue;
      link.path.reset();
      link.posted = 0;
      link.state = LinkState::kDown;
      link.pause = kFirstPause;
      link.next_try = now + link.pause;
      for (uint32_t slot = 0; slot < slots_.size(); slot++) {
        for (uint32_t each = 0; each < kMostReplicas; each++) {
          Attempt& attempt = slots_[slot].attempts[each];
          if (attempt.pending == 0 || attempt.link != number) continue;
          attempt.pending = 0;
          attempt.failed = true;
          ready.push_back({slot, each});
        }
      }
    }
  }
  AdvanceAll(ready);
}

void SharedPool::SetDonors(const std::vector<SharedPoolSettings::Donor>& donors) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  const auto names = [](const SharedPoolSettings::Donor& donor) {
    return [&donor](const auto& other) { return other == donor; };
  };
  for (Link& link : links_) {
    if (std::any_of(donors.begin(), donors.end(), names(link.donor))) {
      link.leaving_since.reset();
    } else if (!link.leaving_since) {
      link.leaving_since = now;
    }
  }
  for (const SharedPoolSettings::Donor& donor : donors) {
    const bool known = std::any_of(links_.begin(), links_.end(),
                                   [&donor](const Link& link) { return link.donor == donor; });
    if (!known && links_.size() < kMostLinks) links_.emplace_back().donor = donor;
  }
  changed_.notify_all();
}

// Ends the paths to donors that are no longer named, when no request uses them.
void SharedPool::LeaveDonors() {
  const std::lock_guard quiet(poller_.quiet());
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  for (uint32_t number = 0; number < links_.size(); number++) {
    Link& link = links_[number];
    if (link.state != LinkState::kUp || !link.leaving_since) continue;
    if (now - *link.leaving_since < kLeaveAfter) continue;
    const auto uses = [number](const Attempt& attempt) {
      return attempt.steps != nullptr && attempt.link == number;
    };
    const bool used = std::any_of(slots_.begin(), slots_.end(), [&uses](const Slot& slot) {
      return std::any_of(slot.attempts.begin(), slot.attempts.end(), uses);
    });
    if (used || link.posted != 0) continue;
    link.path.reset();
    link.state = LinkState::kDown;
    changed_.notify_all();
  }
}

void SharedPool::TakeCare() {
  pthread_setname_np(pthread_self(), "rocegw-far-pool");
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, kTick, [this] { return stop_; })) return;
    }
    CheckTimeouts();
    EndPaths();
    LeaveDonors();
  }
}

void SharedPool::JoinAgain() {
  pthread_setname_np(pthread_self(), "rocegw-far-join");
  for (;;) {
    std::optional<uint32_t> next;
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, kTick, [this] { return stop_; })) return;
      const auto now = Clock::now();
      for (uint32_t number = 0; number < links_.size() && !next; number++) {
        const Link& link = links_[number];
        const bool wanted = link.state == LinkState::kDown && !link.leaving_since;
        if (wanted && link.next_try <= now) next = number;
      }
    }
    if (!next || Join(*next).ok()) continue;
    const std::lock_guard lock(mutex_);
    Link& link = links_[*next];
    link.pause = std::clamp<std::chrono::milliseconds>(link.pause * 2, kFirstPause, kLongestPause);
    link.next_try = Clock::now() + link.pause;
  }
}

}  // namespace rocegw::far
