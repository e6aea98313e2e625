// SPDX-License-Identifier: Apache-2.0
// What the dispatcher does with the disk copy. The copy's queue keeps the order in which operations
// enter it, and an operation enters it while it holds its range: the copy executes overlapping
// writes in the order of the replicas.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gateway/far/session/dispatcher.h"
#include "gateway/far/session/waiter.h"

namespace rocegw::far {

// Gives a write its place in the queue of the disk copy. Returns false when it has to wait. A write
// that a disk copy which is down cannot get goes to the replicas alone. With the lock.
bool Dispatcher::ReserveDisk(Operation& operation) {
  Slab& slab = slabs_[operation.plan.offset() / slab_bytes_];
  auto write = std::make_shared<DiskWrite>();
  write->offset = operation.plan.offset();
  write->length = operation.plan.length();
  switch (disk_->Reserve(*write)) {
    case DiskPath::Room::kFull:
      return false;
    case DiskPath::Room::kDown: {
      // The write is judged anew when no replica has it.
      if (slab.live() == 0) return false;
      const uint64_t begin = write->offset % slab_bytes_;
      slab.DiskSkipped(begin, begin + write->length);
      return true;
    }
    case DiskPath::Room::kGiven:
      write->epoch = slab.disk_epoch();
      operation.disk = std::move(write);
  }
  return true;
}

// Queues the operations' data for the disk copy. Those that no replica gets leave the batch: they
// end when the disk copy has them.
void Dispatcher::SendToDisk(Batch& batch) {
  Batch with_transfers;
  for (Operation* operation : batch) {
    const std::shared_ptr<DiskWrite> write = operation->disk;
    if (operation->transfer_count != 0) with_transfers.push_back(operation);
    if (write == nullptr) continue;
    uint8_t* data = write->data;
    for (const Part& part : operation->plan.parts) {
      std::memcpy(data, part.buffer, part.length);
      data += part.length;
    }
    if (operation->transfer_count == 0) write->waiting = operation;
    disk_->copy().Write(write->offset, write->data, write->length,
                        [this, write](int status, const DiskCopy::Pages& bad) {
                          OnDiskWritten(write, status, bad);
                        });
  }
  batch.swap(with_transfers);
}

// `bad` are the pages that a failed write has not written; without any, it has written none.
void Dispatcher::OnDiskWritten(const std::shared_ptr<DiskWrite>& write, int status,
                               const DiskCopy::Pages& bad) {
  Operation* waiting = nullptr;
  {
    const std::lock_guard lock(mutex_);
    Slab& slab = slabs_[write->offset / slab_bytes_];
    const uint64_t first = write->offset / slab_bytes_ * slab_bytes_;
    const uint64_t end = write->offset + write->length;
    const auto written = [&](uint64_t from, uint64_t to, bool ok) {
      return from >= to || slab.DiskWritten(from - first, to - first, write->epoch, ok);
    };
    uint64_t at = write->offset;
    write->good = true;
    for (const uint64_t page : bad) {
      write->good = written(at, page, true) && write->good;
      const uint64_t behind = std::min(end, page + Slab::kPageBytes);
      write->good = written(std::max(at, page), behind, false) && write->good;
      at = behind;
    }
    write->good = written(at, end, status == 0 || !bad.empty()) && write->good;
    write->ended = true;
    waiting = write->waiting;
  }
  if (waiting != nullptr) Finish(waiting);
  Completed();
}

void Dispatcher::ReadFromDisk(const Part& part) {
  disk_->copy().Read(part.offset, part.buffer, part.length, [this, part](int status) {
    FinishPart(part, status == 0 ? 0 : -EIO);
    Completed();
  });
}

void Dispatcher::Flush(rocegw_memory_done done, void* argument) {
  if (disk_ == nullptr) {
    done(argument, FlushPlacement());
    return;
  }
  disk_->copy().Flush([this, done, argument](int status) {
    bool whole = status == 0;
    {
      const std::lock_guard lock(mutex_);
      for (Slab& slab : slabs_) {
        // A flush that was not executed has made nothing worse.
        if (status != 0 && status != DiskCopy::kNoResult) slab.DiskFlushFailed();
        whole = whole && slab.IsDiskWhole();
      }
    }
    NoteLost([done, argument, whole](bool noted) { done(argument, whole && noted ? 0 : -EIO); });
  });
}

// Pages that are lost, or with `off_disk` also those that only replicas have. With the lock.
std::vector<CopyFile::Range> Dispatcher::Lacking(bool off_disk) const {
  std::vector<CopyFile::Range> lacking;
  for (size_t number = 0; number < slabs_.size(); number++) {
    const uint64_t first = number * slab_bytes_;
    auto found = slabs_[number].NextLacking(0, off_disk);
    while (found) {
      lacking.push_back({first + found->begin, first + found->end});
      found = slabs_[number].NextLacking(found->end, off_disk);
    }
  }
  return lacking;
}

// Calls `done` when the file knows which pages are lost: a later session must neither read old
// bytes of them, nor miss those that are good again.
void Dispatcher::NoteLost(std::function<void(bool noted)> done) {
  std::vector<CopyFile::Range> lost;
  bool known = false;
  {
    const std::lock_guard lock(mutex_);
    lost = Lacking(false);
    known = lost == noted_;
  }
  if (known) {
    done(true);
    return;
  }
  disk_->copy().NoteLost(lost, [this, lost, done = std::move(done)](int status) {
    if (status == 0) {
      const std::lock_guard lock(mutex_);
      noted_ = lost;
    }
    done(status == 0);
  });
}

int Dispatcher::FlushAndWait() {
  Waiter waiter;
  Flush(&Waiter::OnDone, &waiter);
  return waiter.Wait();
}

// Caretaker --------------------------------------------------------------------------------------

void Dispatcher::Recover(uint64_t begin, uint64_t end) {
  const std::lock_guard lock(mutex_);
  while (begin < end) {
    const uint64_t slab = begin / slab_bytes_;
    const uint64_t behind = std::min(end, (slab + 1) * slab_bytes_);
    slabs_[slab].Recovered(begin % slab_bytes_, behind - slab * slab_bytes_);
    begin = behind;
  }
}

void Dispatcher::RecoverLost(const std::vector<CopyFile::Range>& lost) {
  const std::lock_guard lock(mutex_);
  for (const CopyFile::Range& range : lost) {
    for (uint64_t page = range.begin; page < range.end; page += Slab::kPageBytes) {
      const uint64_t begin = page % slab_bytes_;
      slabs_[page / slab_bytes_].RecoveredLost(begin, begin + Slab::kPageBytes);
    }
  }
  noted_ = lost;
}

void Dispatcher::CheckDisk() {
  if (disk_ == nullptr) return;
  disk_->copy().FailIfHung(std::chrono::milliseconds(settings_.timeout_ms));
}

uint64_t Dispatcher::OffDiskPages() {
  const std::lock_guard lock(mutex_);
  uint64_t pages = 0;
  for (const Slab& slab : slabs_) pages += slab.off_disk_pages();
  return pages;
}

Dispatcher::DiskEnd Dispatcher::StopDisk() {
  if (disk_ == nullptr) return {};
  if (disk_end_) return *disk_end_;
  // The disk may hang, and the caretaker does not look any more.
  const auto wait_for = [this](Waiter& waiter) {
    while (!waiter.WaitFor(std::chrono::milliseconds(50))) CheckDisk();
    return waiter.Wait();
  };
  DiskEnd end;
  Waiter flushed;
  disk_->copy().Flush([&flushed](int status) { Waiter::OnDone(&flushed, status); });
  end.noted = wait_for(flushed) == 0;
  std::vector<CopyFile::Range> lacking;
  bool known = false;
  {
    const std::lock_guard lock(mutex_);
    lacking = Lacking(true);
    known = lacking == noted_;
  }
  for (const CopyFile::Range& range : lacking) {
    end.lacking += (range.end - range.begin) / Slab::kPageBytes;
  }
  if (!known) {
    Waiter noted;
    disk_->copy().NoteLost(std::move(lacking),
                           [&noted](int status) { Waiter::OnDone(&noted, status); });
    end.noted = wait_for(noted) == 0 && end.noted;
  }
  disk_->copy().Stop(std::chrono::milliseconds(settings_.timeout_ms));
  disk_end_ = end;
  return end;
}

std::optional<uint32_t> Dispatcher::FindOffDisk(uint32_t first) {
  if (!IsDiskUp()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  for (uint32_t number = first; number < slabs_.size(); number++) {
    if (slabs_[number].off_disk_pages() != 0 && slabs_[number].live() != 0) return number;
  }
  return std::nullopt;
}

Dispatcher::CopyStart Dispatcher::StartDiskCopy(uint32_t slab, uint64_t* position,
                                                std::function<void(bool copied)> done) {
  auto operation = std::make_unique<Operation>();
  {
    const std::lock_guard lock(mutex_);
    Slab& state = slabs_[slab];
    const auto stretch =
        state.NextOffDisk(*position, std::min(copy_bytes_, settings_.merge.most_bytes));
    if (!stretch) return CopyStart::kNothingLeft;
    const Replica* source = state.ForRead(turn_++);
    if (source == nullptr) return CopyStart::kBlocked;
    auto write = std::make_shared<DiskWrite>();
    write->offset = slab * slab_bytes_ + stretch->begin;
    write->length = stretch->end - stretch->begin;
    switch (disk_->Reserve(*write)) {
      case DiskPath::Room::kFull:
        return CopyStart::kLater;
      case DiskPath::Room::kDown:
        return CopyStart::kBlocked;
      case DiskPath::Room::kGiven:
        break;
    }
    if (!PrepareCopy(*operation, slab, *stretch, {*source}, {Copy::kDisk, std::move(done)})) {
      disk_->copy().Free(write->data);
      return CopyStart::kLater;
    }
    operation->disk = std::move(write);
    *position = stretch->end;
  }
  Send({operation.release()});
  return CopyStart::kStarted;
}

// A new replica is restored from the disk copy: no other one is live.
void Dispatcher::ReadCopyFromDisk(Operation* operation) {
  uint8_t* staging = memory_.staging_data() + operation->staging;
  disk_->copy().Read(operation->plan.offset(), staging, operation->plan.length(),
                     [this, operation](int status) {
                       if (status != 0) CopyUnreadable(*operation);
                       FinishCopy(operation, status == 0);
                       Completed();
                     });
}

// Copies page by page from now on, and gives up a page that cannot be read: the others are
// restored.
void Dispatcher::CopyUnreadable(const Operation& operation) {
  if (!IsDiskUp()) return;
  const std::lock_guard lock(mutex_);
  if (copy_bytes_ == Slab::kPageBytes) {
    const uint64_t begin = operation.plan.offset() % slab_bytes_;
    Slab& slab = slabs_[operation.slab];
    slab.DiskWritten(begin, begin + operation.plan.length(), slab.disk_epoch(), false);
  }
  copy_bytes_ = Slab::kPageBytes;
}

// The disk copy gets pages that it lacks: what was read from a replica, in the room that
// StartDiskCopy reserved. The range is held until the write has its place in the queue.
void Dispatcher::WriteCopyToDisk(Operation* operation) {
  const std::unique_ptr<Operation> owned(operation);
  const std::unique_ptr<Copy> copy(operation->copy);
  const std::shared_ptr<DiskWrite> write = operation->disk;
  {
    const std::lock_guard lock(mutex_);
    write->epoch = slabs_[operation->slab].disk_epoch();
  }
  std::memcpy(write->data, memory_.staging_data() + operation->staging, write->length);
  disk_->copy().Write(
      write->offset, write->data, write->length,
      [this, write, done = std::move(copy->done)](int status, const DiskCopy::Pages& bad) {
        OnDiskWritten(write, status, bad);
        done(status == 0);
      });
  const std::lock_guard lock(mutex_);
  Release(*operation);
}

}  // namespace rocegw::far
