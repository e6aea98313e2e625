// SPDX-License-Identifier: Apache-2.0
// Part of the dispatcher that sends: requests leave their queue as transfers to donors.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "gateway/far/session/dispatcher.h"

namespace rocegw::far {

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
  // While donors are suspended, requests wait until the session continues there.
  if (suspended_ != 0) return false;
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
    if (operation.copy == nullptr && links_[target.donor].credits == 0) return false;
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
    if (operation.copy == nullptr) link.credits--;
    link.unposted++;
    link.Append(transfer);
  }
}

uint32_t Dispatcher::Segments(const Operation& operation, ibv_sge* segments) const {
  const auto key_of = [this](const Request& request) {
    const ibv_mr* const mr = request.registration.mr;
    return mr != nullptr ? mr->lkey : memory_.pool_key();
  };
  uint32_t count = 0;
  uint64_t staging = reinterpret_cast<uintptr_t>(memory_.staging_data()) + operation.staging;
  bool staged_before = false;
  for (const Part& part : operation.plan.parts) {
    if (part.staged && staged_before) {
      segments[count - 1].length += part.length;
    } else {
      segments[count++] = {part.staged ? staging : reinterpret_cast<uintptr_t>(part.buffer),
                           part.length,
                           part.staged ? memory_.staging_key() : key_of(*part.request)};
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

}  // namespace rocegw::far
