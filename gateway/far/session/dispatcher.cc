// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/session/dispatcher.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

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
      admission_(settings.window_bytes) {}

// Requests ---------------------------------------------------------------------------------------

int Dispatcher::Submit(Direction direction, uint64_t offset, uint8_t* buffer, uint64_t length,
                       rocegw_memory_done done, void* argument) {
  if (length == 0 || offset > size() || length > size() - offset) return -EINVAL;
  {
    const std::lock_guard lock(mutex_);
    if (queued_bytes_ != 0 && queued_bytes_ + length > settings_.most_queued_bytes) return -EAGAIN;
    queued_bytes_ += length;
    (direction == Direction::kRead ? counts_.read_requests : counts_.write_requests)++;
    (direction == Direction::kRead ? counts_.read_bytes : counts_.write_bytes) += length;
  }
  auto* request = new Request;
  request->done = done;
  request->argument = argument;
  request->length = length;
  bool staged = true;
  if (memory_.IsInPool(buffer, length)) {
    request->key = memory_.pool_key();
    staged = false;
  } else if (length > settings_.copy_limit_bytes) {
    request->mr = memory_.Register(buffer, length);
    if (request->mr != nullptr) {
      request->key = request->mr->lkey;
      staged = false;
    }
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
    if (request->mr != nullptr) counts_.registered_requests++;
    for (const Part& part : parts) Queue(direction).Push(part);
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

// Sending ----------------------------------------------------------------------------------------

void Dispatcher::Drain(Direction direction) {
  for (;;) {
    Batch batch;
    std::vector<Settled> settled;
    {
      const std::lock_guard lock(mutex_);
      while (batch.size() < settings_.most_chained && TakeOne(direction, batch, settled)) {
      }
    }
    for (const Settled& each : settled) {
      if (each.from_disk) {
        ReadFromDisk(each.part);
        continue;
      }
      // A read without a transfer succeeds only for pages that were never written.
      if (each.status == 0) std::memset(each.part.buffer, 0, each.part.length);
      FinishPart(each.part, each.status);
    }
    if (direction == Direction::kWrite) {
      for (const Operation* operation : batch) CopyStaged(*operation, false);
    }
    const bool took = !batch.empty() || !settled.empty();
    if (disk_ != nullptr && direction == Direction::kWrite) SendToDisk(batch);
    if (!batch.empty()) Send(batch);
    if (!took) return;
  }
}

// Takes one plan out of the queue. Adds it to the batch, or its parts to `settled` when the slab
// cannot serve them. Returns false when nothing can be taken now.
bool Dispatcher::TakeOne(Direction direction, Batch& batch, std::vector<Settled>& settled) {
  RangeHolds* holds = direction == Direction::kWrite ? &holds_ : nullptr;
  // While the window is full, requests stay where they are: looking for neighbours is for later.
  if (Queue(direction).empty() || !admission_.HasRoom(Queue(direction).front().length)) {
    return false;
  }
  auto plan = Queue(direction).Take(holds);
  if (!plan) return false;
  Slab& slab = slabs_[plan->offset() / slab_bytes_];
  const uint64_t begin = plan->offset() % slab_bytes_;
  const uint64_t end = begin + plan->length();
  const bool known =
      direction == Direction::kRead ? !slab.IsLost(begin, end) : !slab.LeavesLost(begin, end);
  const bool is_read = direction == Direction::kRead;
  if (!known || (slab.live() == 0 && (is_read || !IsDiskUp()))) {
    if (holds != nullptr) holds->Release(plan->offset());
    if (!known) {
      Settle(direction, slab, *plan, settled);
    } else {
      // Without a live replica, the disk copy serves. Pages that were never written are zero.
      const bool has_data = slab.HasData(begin, end);
      const bool from_disk = is_read && has_data && IsDiskUp();
      const int status = is_read && !has_data ? 0 : -EIO;
      for (const Part& part : plan->parts) settled.push_back({part, status, from_disk});
    }
    return true;
  }
  std::vector<Replica> targets;
  if (is_read) {
    targets.push_back(*slab.ForRead(turn_++));
  } else {
    targets = slab.replicas();
  }
  auto operation = std::make_unique<Operation>();
  operation->plan = std::move(*plan);
  operation->direction = direction;
  if (!Reserve(*operation, targets)) {
    if (holds != nullptr) holds->Release(operation->plan.offset());
    Queue(direction).PutBack(operation->plan);
    return false;
  }
  if (!is_read) slab.WriteSent(begin, end);
  counts_.merged_requests += operation->plan.parts.size() - 1;
  (direction == Direction::kRead ? counts_.read_operations : counts_.write_operations) +=
      targets.size();
  Start(*operation, targets);
  batch.push_back(operation.release());
  return true;
}

// Fails the parts of a plan that need a lost page, and returns the others to the queue, where each
// is judged anew.
void Dispatcher::Settle(Direction direction, const Slab& slab, const Plan& plan,
                        std::vector<Settled>& settled) {
  Plan others;
  for (const Part& part : plan.parts) {
    const uint64_t begin = part.offset % slab_bytes_;
    const uint64_t end = begin + part.length;
    // Only the first and the last part of a write can leave a page partly unknown.
    const bool at_edge = part.offset == plan.offset() || part.end() == plan.end();
    const bool fails = direction == Direction::kRead ? slab.IsLost(begin, end)
                                                     : at_edge && slab.LeavesLost(begin, end);
    if (fails) {
      settled.push_back({part, -EIO});
    } else {
      others.parts.push_back(part);
    }
  }
  if (!others.parts.empty()) Queue(direction).PutBack(others);
}

// Reserves what the operation needs: entries of send queues, window, staging buffer.
bool Dispatcher::Reserve(Operation& operation, const std::vector<Replica>& targets) {
  for (const Replica& target : targets) {
    if (links_[target.donor].credits == 0) return false;
  }
  if (!admission_.Admit(operation.plan.length())) return false;
  operation.staged_bytes = operation.plan.staged_bytes();
  if (operation.staged_bytes != 0) {
    const auto staging = memory_.staging().Allocate(operation.staged_bytes);
    if (!staging) {
      admission_.Release(operation.plan.length());
      return false;
    }
    operation.staging = *staging;
  }
  const bool for_disk =
      disk_ != nullptr && operation.direction == Direction::kWrite && operation.copy == nullptr;
  if (for_disk && !ReserveDisk(operation)) {
    admission_.Release(operation.plan.length());
    if (operation.staged_bytes != 0) memory_.staging().Free(operation.staging);
    return false;
  }
  if (operation.copy == nullptr) counts_.copied_bytes += operation.staged_bytes;
  return true;
}

// Enters the operation's transfers in the donors' lists.
void Dispatcher::Start(Operation& operation, const std::vector<Replica>& targets) {
  operation.slab = static_cast<uint32_t>(operation.plan.offset() / slab_bytes_);
  operation.generation = slabs_[operation.slab].generation();
  operation.live = slabs_[operation.slab].live() != 0;
  operation.transfer_count = static_cast<uint32_t>(targets.size());
  operation.pending = operation.transfer_count;
  operation.succeeded = 0;
  const Clock::time_point now = Clock::now();
  for (uint32_t number = 0; number < targets.size(); number++) {
    const Replica& target = targets[number];
    DonorLink& link = links_[target.donor];
    Transfer& transfer = operation.transfers[number];
    transfer.kind = Completable::Kind::kTransfer;
    transfer.connection = link.connection.get();
    transfer.operation = &operation;
    transfer.donor = target.donor;
    transfer.address = target.address + operation.plan.offset() % slab_bytes_;
    transfer.key = target.key;
    transfer.sent = now;
    link.credits--;
    link.unposted++;
    link.Append(transfer);
  }
}

uint32_t Dispatcher::Segments(const Operation& operation, ibv_sge* segments) const {
  uint32_t count = 0;
  uint64_t staging = reinterpret_cast<uintptr_t>(memory_.staging_data()) + operation.staging;
  bool staged_before = false;
  for (const Part& part : operation.plan.parts) {
    if (part.staged && staged_before) {
      segments[count - 1].length += part.length;
    } else {
      segments[count++] = {part.staged ? staging : reinterpret_cast<uintptr_t>(part.buffer),
                           part.length, part.staged ? memory_.staging_key() : part.request->key};
    }
    if (part.staged) staging += part.length;
    staged_before = part.staged;
  }
  return count;
}

void Dispatcher::Send(const Batch& batch) {
  struct Posting {
    ibv_send_wr request{};
    Transfer* transfer = nullptr;
  };
  // Operations of a batch all have their segments side by side; requests of one donor are a chain.
  std::vector<ibv_sge> segments(batch.size() * settings_.merge.most_segments);
  std::vector<Posting> postings;
  postings.reserve(batch.size() * kMostCopies);
  for (size_t number = 0; number < batch.size(); number++) {
    Operation& operation = *batch[number];
    ibv_sge* mine = &segments[number * settings_.merge.most_segments];
    const uint32_t count = Segments(operation, mine);
    for (uint32_t each = 0; each < operation.transfer_count; each++) {
      Transfer& transfer = operation.transfers[each];
      Posting& posting = postings.emplace_back();
      posting.transfer = &transfer;
      posting.request.wr_id = reinterpret_cast<uintptr_t>(static_cast<Completable*>(&transfer));
      posting.request.sg_list = mine;
      posting.request.num_sge = static_cast<int>(count);
      posting.request.opcode =
          operation.direction == Direction::kRead ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
      posting.request.send_flags = IBV_SEND_SIGNALED;
      posting.request.wr.rdma.remote_addr = transfer.address;
      posting.request.wr.rdma.rkey = transfer.key;
    }
  }
  // A transfer's operation may be complete, and deleted, once it is posted: only values of the
  // postings are used from then on.
  std::stable_sort(postings.begin(), postings.end(), [](const Posting& a, const Posting& b) {
    return a.transfer->donor < b.transfer->donor;
  });
  std::vector<std::pair<uint32_t, uint32_t>> posted;  // donor, transfers
  std::vector<Transfer*> refused;
  for (size_t first = 0; first < postings.size();) {
    const uint32_t donor = postings[first].transfer->donor;
    Connection* connection = postings[first].transfer->connection;
    size_t behind = first + 1;
    while (settings_.chain && behind < postings.size() &&
           postings[behind].transfer->donor == donor) {
      postings[behind - 1].request.next = &postings[behind].request;
      behind++;
    }
    ibv_send_wr* bad = nullptr;
    if (connection->Post(&postings[first].request, &bad) != 0) {
      for (size_t at = first; at < behind; at++) {
        if (&postings[at].request == bad || !refused.empty())
          refused.push_back(postings[at].transfer);
      }
    }
    doorbells_.fetch_add(1, std::memory_order_relaxed);
    posted.emplace_back(donor, static_cast<uint32_t>(behind - first));
    for (Transfer* transfer : refused) OnTransfer(*transfer, false);
    refused.clear();
    first = behind;
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [donor, count] : posted) links_[donor].unposted -= count;
}

// Copies between callers' buffers and the operation's stretch of the staging buffer.
void Dispatcher::CopyStaged(const Operation& operation, bool out) const {
  if (operation.staged_bytes == 0) return;
  uint8_t* staging = memory_.staging_data() + operation.staging;
  for (const Part& part : operation.plan.parts) {
    if (!part.staged) continue;
    std::memcpy(out ? part.buffer : staging, out ? staging : part.buffer, part.length);
    staging += part.length;
  }
}

// Completing -------------------------------------------------------------------------------------

void Dispatcher::OnTransfer(Transfer& transfer, bool ok) {
  Operation* operation = transfer.operation;
  bool donor_failed = false;
  bool complete = false;
  {
    const std::lock_guard lock(mutex_);
    DonorLink& link = links_[transfer.donor];
    link.Remove(transfer);
    link.credits++;
    if (ok) {
      operation->succeeded++;
    } else if (link.state == DonorLink::State::kUp) {
      FailLinkLocked(transfer.donor, false);
      donor_failed = true;
    }
    complete = --operation->pending == 0;
  }
  if (donor_failed) donor_failed_();
  if (complete) Finish(operation);
}

void Dispatcher::Completed() {
  Drain(Direction::kRead);
  Drain(Direction::kWrite);
}

void Dispatcher::Release(const Operation& operation) {
  if (operation.direction == Direction::kWrite || operation.copy != nullptr) {
    holds_.Release(operation.plan.offset());
  }
  admission_.Release(operation.plan.length());
  if (operation.staged_bytes != 0) memory_.staging().Free(operation.staging);
}

void Dispatcher::Finish(Operation* operation) {
  if (operation->copy != nullptr) {
    FinishCopy(operation, operation->succeeded != 0);
    return;
  }
  if (operation->direction == Direction::kRead) {
    FinishRead(operation);
    return;
  }
  int status = -EIO;
  std::vector<bool> on_disk;  // by part, where the disk copy decides
  {
    const std::lock_guard lock(mutex_);
    Slab& slab = slabs_[operation->slab];
    // A donor that failed this write is lost; the write succeeded if a live replica remains that
    // has it, that is, if the slab was not lost as a whole since. Otherwise the disk copy decides.
    if (operation->succeeded != 0 && operation->live &&
        slab.generation() == operation->generation) {
      status = 0;
      const uint64_t begin = operation->plan.offset() % slab_bytes_;
      slab.WriteDone(begin, begin + operation->plan.length());
    } else if (operation->disk != nullptr) {
      if (!operation->disk->ended) {
        operation->disk->waiting = operation;
        return;
      }
      for (const Part& part : operation->plan.parts) {
        const uint64_t begin = part.offset % slab_bytes_;
        on_disk.push_back(operation->disk->good || slab.IsOnDisk(begin, begin + part.length));
      }
    }
    Release(*operation);
  }
  const std::unique_ptr<Operation> owned(operation);
  for (size_t each = 0; each < operation->plan.parts.size(); each++) {
    const bool served = !on_disk.empty() && on_disk[each];
    FinishPart(operation->plan.parts[each], served ? 0 : status);
  }
}

void Dispatcher::FinishRead(Operation* operation) {
  const std::unique_ptr<Operation> owned(operation);
  const bool ok = operation->succeeded != 0;
  if (ok) CopyStaged(*operation, true);
  {
    const std::lock_guard lock(mutex_);
    Release(*operation);
    if (!ok) {
      // Another replica serves the read, or its pages are lost by now. The donor that failed it is
      // lost, so that this ends.
      counts_.retried_reads++;
      reads_.PutBack(operation->plan);
      return;
    }
  }
  for (const Part& part : operation->plan.parts) FinishPart(part, 0);
}

void Dispatcher::FinishPart(const Part& part, int status) {
  Request* request = part.request;
  if (status != 0) request->status = status;
  if (request->parts_left.fetch_sub(1) != 1) return;
  if (request->mr != nullptr) ibv_dereg_mr(request->mr);
  const int result = request->status;
  if (request->done != nullptr) request->done(request->argument, result);
  const uint64_t length = request->length;
  delete request;
  const std::lock_guard lock(mutex_);
  if (result != 0) counts_.failed_requests++;
  queued_bytes_ -= length;
  less_queued_.notify_all();
}

// Donors -----------------------------------------------------------------------------------------

void Dispatcher::LinkUp(uint32_t donor, std::unique_ptr<Connection> connection,
                        const Welcome& welcome) {
  const std::lock_guard lock(mutex_);
  DonorLink& link = links_[donor];
  link.connection = std::move(connection);
  link.credits = kSendDepth;
  link.free_bytes = welcome.free_bytes;
  link.lease_seconds = welcome.lease_seconds;
  link.draining = false;  // a draining donor refuses new sessions
  link.state = DonorLink::State::kUp;
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
  for (Slab& slab : slabs_) slab.DonorLost(donor);
}

void Dispatcher::CheckLinks(
    const std::function<std::unique_lock<std::mutex>(uint32_t donor)>& quiet) {
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
      if (link.oldest == nullptr && link.unposted == 0) {
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

// Slabs ------------------------------------------------------------------------------------------

void Dispatcher::AddReplica(uint32_t slab, const Replica& replica) {
  {
    const std::lock_guard lock(mutex_);
    if (links_[replica.donor].state != DonorLink::State::kUp) return;
    slabs_[slab].Add(replica);
  }
  Completed();
}

Dispatcher::CopyStart Dispatcher::StartCopy(uint32_t slab, uint32_t donor, uint64_t* position,
                                            std::function<void(bool copied)> done) {
  auto operation = std::make_unique<Operation>();
  {
    const std::lock_guard lock(mutex_);
    Slab& state = slabs_[slab];
    const auto stretch =
        state.NextWritten(*position, std::min(copy_bytes_, settings_.merge.most_bytes));
    if (!stretch) {
      copy_bytes_ = kCopyBytes;
      state.Restored(donor);
      return CopyStart::kNothingLeft;
    }
    const Replica* source = state.ForRead(turn_++);
    if ((source == nullptr && !IsDiskUp()) || !state.Has(donor)) return CopyStart::kBlocked;
    std::vector<Replica> sources;
    if (source != nullptr) sources.push_back(*source);
    if (!PrepareCopy(*operation, slab, *stretch, sources, {donor, std::move(done)})) {
      return CopyStart::kLater;
    }
    *position = stretch->end;
  }
  if (operation->transfer_count != 0) {
    Send({operation.release()});
  } else {
    ReadCopyFromDisk(operation.release());
  }
  return CopyStart::kStarted;
}

// Holds the stretch and starts its read from the source, if there is one. With the lock.
bool Dispatcher::PrepareCopy(Operation& operation, uint32_t slab, const Slab::Stretch& stretch,
                             const std::vector<Replica>& sources, Copy copy) {
  Part part;
  part.offset = slab * slab_bytes_ + stretch.begin;
  part.length = static_cast<uint32_t>(stretch.end - stretch.begin);
  part.staged = true;
  if (!holds_.Hold(part.offset, part.end())) return false;
  operation.plan.parts.push_back(part);
  operation.copy = new Copy(std::move(copy));
  if (!Reserve(operation, sources)) {
    holds_.Release(part.offset);
    delete operation.copy;
    return false;
  }
  Start(operation, sources);
  return true;
}

// Goes on with the write to the new replica when the read has succeeded.
void Dispatcher::FinishCopy(Operation* operation, bool ok) {
  if (ok && operation->copy->donor == Copy::kDisk) {
    WriteCopyToDisk(operation);
    return;
  }
  bool send = false;
  {
    const std::lock_guard lock(mutex_);
    const Slab& slab = slabs_[operation->slab];
    if (ok && operation->direction == Direction::kRead) {
      for (const Replica& replica : slab.replicas()) {
        if (replica.donor != operation->copy->donor || links_[replica.donor].credits == 0) continue;
        operation->direction = Direction::kWrite;
        Start(*operation, {replica});
        send = true;
        break;
      }
      ok = send;
    }
    if (ok && !send) counts_.restored_bytes += operation->plan.length();
    if (!send) Release(*operation);
  }
  // Room that was reserved for a copy to the disk whose read has failed.
  if (operation->disk != nullptr) disk_->copy().Free(operation->disk->data);
  if (send) {
    Send({operation});
    return;
  }
  operation->copy->done(ok);
  delete operation->copy;
  delete operation;
}

bool Dispatcher::SharesDomain(const Slab& slab) const {
  const std::vector<Replica>& replicas = slab.replicas();
  for (size_t one = 0; one < replicas.size(); one++) {
    for (size_t other = 0; other < one; other++) {
      if (domains_[replicas[one].donor] == domains_[replicas[other].donor]) return true;
    }
  }
  return false;
}

bool Dispatcher::IsBusyLocked(uint32_t slab, uint32_t donor) const {
  for (const Transfer* transfer = links_[donor].oldest; transfer != nullptr;
       transfer = transfer->next) {
    if (transfer->operation->slab == slab) return true;
  }
  return false;
}

std::vector<Dispatcher::Dropped> Dispatcher::DropDraining() {
  std::vector<Dropped> dropped;
  const std::lock_guard lock(mutex_);
  for (uint32_t number = 0; number < slabs_.size(); number++) {
    Slab& slab = slabs_[number];
    std::vector<Replica> leaving;
    uint32_t staying = 0;
    for (const Replica& replica : slab.replicas()) {
      if (links_[replica.donor].draining) {
        leaving.push_back(replica);
      } else if (replica.state == ReplicaState::kLive) {
        staying++;
      }
    }
    if (leaving.empty() || staying < settings_.replicas) continue;
    for (const Replica& replica : leaving) {
      slab.Drop(replica.donor);
      dropped.push_back({number, replica.donor, replica.lease});
    }
    counts_.leases_returned += leaving.size();
  }
  return dropped;
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
