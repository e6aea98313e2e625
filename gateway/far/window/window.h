// SPDX-License-Identifier: Apache-2.0
// Window onto a session's space: resolves faults of threads that touch pages which are not
// resident. One thread handles faults, evicts and writes back; reads complete on the session's
// pollers. One lock guards the state of the pages and every change of the mapping; threads of the
// program hold it with all signals blocked, because a signal handler may touch the window.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "gateway/far/session/api/rocegw_memory_map.h"
#include "gateway/far/session/dispatcher.h"
#include "gateway/far/window/fault_fd.h"
#include "gateway/far/window/resident_pages.h"

namespace rocegw::far {

class Window {
 public:
  static constexpr uint64_t kPage = 4096;

  enum class Content : uint8_t {
    kStored,  // that of the space
    kZero,    // zero, whatever the space holds
  };

  // The dispatcher outlives the window; the range is within its space.
  Window(Dispatcher& dispatcher, uint64_t offset, uint64_t bytes, uint64_t resident_bytes,
         Content content = Content::kStored);
  ~Window();  // unmaps; does not synchronize
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  Status Open();
  uint8_t* address() const { return memory_; }
  // Whether system calls may meet pages that are not resident.
  bool serves_system_calls() const { return faults_.reports_system_calls(); }
  // Whether pages that the kernel has pinned (O_DIRECT) are not evicted meanwhile.
  bool keeps_pinned_pages() const { return detached_ != nullptr; }
  int descriptor() const { return faults_.get(); }
  void SetResident(uint64_t bytes) { most_resident_ = bytes / kPage; }
  // Makes whole pages zero; waits for reads of them. [begin, end) are offsets in the window.
  void Discard(uint64_t begin, uint64_t end);
  // Whole pages leave the window with their content, where they are: they are ordinary memory of
  // this host from then on, which children of fork inherit. Other threads, and the kernel for a
  // device, may use the pages meanwhile. -EIO: a page is lost, -ENOMEM; some have left then.
  int Leave(uint64_t begin, uint64_t end);
  // Pages that have left are in the window again, and zero. The caller has mapped fresh memory
  // there, which no thread uses. Returns false when the kernel refuses: the pages stay outside.
  bool Rejoin(uint64_t begin, uint64_t end);
  // Without the lock, in a child of fork, which has only the calling thread: whether the page had
  // left the window.
  bool HasLeft(uint64_t page) const { return pages_.state(page) == ResidentPages::State::kHere; }
  // Writes dirty pages back. Not by the handling thread.
  int Synchronize();
  rocegw_memory_map_statistics Statistics();

 private:
  struct Read;
  struct WriteBack;

  void Handle();
  void OnFault(const FaultFd::Fault& fault);
  void Fetch(uint64_t page, uint64_t most, bool store);
  void FillZeroes(uint64_t page, bool store);
  static void OnRead(void* argument, int status);
  // Reads pages that leave the window.
  int ReadLeaving(uint64_t page, uint64_t pages, uint8_t* buffer);
  void MakeRoom(uint64_t pages);
  bool TakeOut(uint64_t page, size_t number, size_t dirty);
  void CopyPages(const std::vector<uint64_t>& pages);
  // Writes the copies of the pages and waits. Returns the pages that failed.
  std::vector<uint64_t> WriteBackPages(const std::vector<uint64_t>& pages);
  // Returns how many pages were evicted.
  size_t FinishEviction(const std::vector<uint64_t>& victims, const std::vector<uint64_t>& failed);
  int WriteDirty();
  uint8_t* At(uint64_t page) const { return memory_ + page * kPage; }
  uintptr_t AddressOf(uint64_t page) const { return reinterpret_cast<uintptr_t>(At(page)); }
  void WakeHandler();

  Dispatcher& dispatcher_;
  const uint64_t offset_;
  const uint64_t bytes_;
  std::atomic<uint64_t> most_resident_;  // pages
  uint8_t* memory_ = nullptr;
  uint8_t* outgoing_ = nullptr;   // copies of pages that are written back
  uint8_t* detached_ = nullptr;   // pages are moved to there; nullptr: the kernel cannot move pages
  bool detached_filled_ = false;  // the kernel has put pages there; of the handling thread
  FaultFd faults_;
  UniqueFd wake_fd_;
  std::thread handler_;

  std::mutex mutex_;  // guards the following
  std::condition_variable changed_;
  ResidentPages pages_;
  std::deque<std::pair<uint64_t, bool>> single_;  // pages to read alone, and whether to store to
  uint64_t reads_ = 0;                            // in progress
  bool stop_ = false;
  uint64_t sync_asked_ = 0, sync_done_ = 0;
  int sync_result_ = 0;
  rocegw_memory_map_statistics counts_{};
};

}  // namespace rocegw::far
