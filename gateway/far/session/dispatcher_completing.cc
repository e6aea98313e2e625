// SPDX-License-Identifier: Apache-2.0
// Part of the dispatcher that completes transfers and requests.
#include <cerrno>
#include <memory>
#include <vector>

#include "gateway/far/session/dispatcher.h"

namespace rocegw::far {

void Dispatcher::OnTransfer(Transfer& transfer, bool ok) {
  Operation* operation = transfer.operation;
  bool donor_failed = false;
  bool complete = false;
  // The donor is not lost when it is this host's own device that has ended.
  const bool device_gone = !ok && memory_.IsDeviceGone();
  {
    const std::lock_guard lock(mutex_);
    DonorLink& link = links_[transfer.donor];
    link.Remove(transfer);
    if (operation->copy == nullptr) link.credits++;
    if (ok) {
      operation->succeeded++;
    } else if (link.state == DonorLink::State::kUp) {
      if (device_gone) {
        SuspendLinksLocked();
      } else {
        FailLinkLocked(transfer.donor, false);
      }
      donor_failed = true;
    }
    operation->again = operation->again || (!ok && link.suspended);
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
    if (operation->again) {
      RepeatLater(*operation);
      Release(*operation);
      delete operation;
      return;
    }
    // A donor that failed this write is lost; the write succeeded if a live replica remains that
    // has it, that is, if the slab was not lost as a whole since. Otherwise the disk copy decides.
    if (operation->succeeded != 0 && operation->live &&
        slab.generation() == operation->generation) {
      status = 0;
      const uint64_t begin = operation->plan.offset() % slab_bytes_;
      const uint64_t lost = slab.lost_pages();
      slab.WriteDone(begin, begin + operation->plan.length());
      if (slab.lost_pages() != lost) placement_++;
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
      if (operation->again) {
        RepeatLater(*operation);
      } else {
        reads_.PutBack(operation->plan);
      }
      return;
    }
  }
  for (const Part& part : operation->plan.parts) FinishPart(part, 0);
}

void Dispatcher::FinishPart(const Part& part, int status) {
  Request* request = part.request;
  if (status != 0) request->status = status;
  if (request->parts_left.fetch_sub(1) != 1) return;
  if (request->registration.mr != nullptr) ibv_dereg_mr(request->registration.mr);
  const int result = request->status;
  if (request->done != nullptr) request->done(request->argument, result);
  const uint64_t length = request->length;
  delete request;
  const std::lock_guard lock(mutex_);
  if (result != 0) counts_.failed_requests++;
  queued_bytes_ -= length;
  less_queued_.notify_all();
}

}  // namespace rocegw::far
