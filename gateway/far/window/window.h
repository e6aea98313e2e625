// SPDX-License-Identifier: Apache-2.0
// Window onto a session's space: resolves faults of threads that touch pages which are not
// resident. One thread handles faults, evicts and writes back; reads complete on the session's
// pollers. Or threads handle their own faults (SIGBUS), and that thread evicts ahead of them. One
// lock guards the state of the pages and every change of the mapping; threads of the program hold
// it with all signals blocked, because a signal handler may touch the window.
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
  static constexpr uint64_t kEvictedAtOnce = 64;  // pages; adjacent ones are written as one
  static constexpr int kTickMs = 2;               // after which a refused request is tried again

  enum class Content : uint8_t {
    kStored,  // that of the space
    kZero,    // zero, whatever the space holds
  };

  // Thread that handles a fault.
  enum class Faults : uint8_t {
    kByHandler,  // the thread of the window, for system calls as well
    kHere,       // the faulting thread, in its handler of SIGBUS; system calls fail with EFAULT
  };

  // The dispatcher outlives the window; the range is within its space.
  Window(Dispatcher& dispatcher, uint64_t offset, uint64_t bytes, uint64_t resident_bytes,
         Content content = Content::kStored, Faults faults = Faults::kByHandler);
  ~Window();  // unmaps; does not synchronize
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  Status Open();
  uint8_t* address() const { return memory_; }
  // Whether system calls may meet pages that are not resident.
  bool serves_system_calls() const {
    return faults_.reports_system_calls() && handling_ == Faults::kByHandler;
  }
  // Whether pages that the kernel has pinned (O_DIRECT) are not evicted meanwhile.
  bool keeps_pinned_pages() const { return inactive_ != nullptr; }
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
  // By the faulting thread, in its handler of SIGBUS. Returns false when the page is lost.
  bool HandleHere(uintptr_t address, bool store);
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
  void FillZeroesLocked(uint64_t page, bool store);
  static void OnRead(void* argument, int status);
  // Reads pages that leave the window.
  int ReadLeaving(uint64_t page, uint64_t pages, uint8_t* buffer);
  // Pages that the handling thread keeps free for faulting threads that handle their own faults.
  uint64_t Ahead() const;
  bool HasRoomHere(std::unique_lock<std::mutex>& lock);
  void ReadHere(std::unique_lock<std::mutex>& lock, uint64_t page, bool store);
  Status MapInactive();
  void MakeRoom(uint64_t pages);
  void Deactivate();
  void Reactivate(uint64_t page, bool store);
  size_t TakeOutInactive(uint64_t needed, std::vector<uint64_t>& dirty);
  void DropPlaces(std::vector<uint32_t> places);
  void CopyPages(const std::vector<uint64_t>& pages);
  void CopyPagesLocked(const std::vector<uint64_t>& pages);
  // Writes the copies of the pages and waits. Returns the pages that failed.
  std::vector<uint64_t> WriteBackPages(const std::vector<uint64_t>& pages);
  // Returns how many pages were evicted.
  size_t FinishEviction(const std::vector<uint64_t>& victims, const std::vector<uint64_t>& failed);
  int WriteDirty();
  uint8_t* At(uint64_t page) const { return memory_ + page * kPage; }
  uint8_t* AtPlace(uint32_t place) const { return inactive_ + place * kPage; }
  uintptr_t AddressOf(uint64_t page) const { return reinterpret_cast<uintptr_t>(At(page)); }
  void WakeHandler();

  Dispatcher& dispatcher_;
  const uint64_t offset_;
  const uint64_t bytes_;
  const Faults handling_;
  std::atomic<uint64_t> most_resident_;  // pages
  uint8_t* memory_ = nullptr;
  uint8_t* outgoing_ = nullptr;  // copies of pages that are written back
  uint8_t* inactive_ = nullptr;  // memory of inactive pages; nullptr: the kernel cannot move pages
  uint64_t places_ = 0;          // pages of it
  FaultFd faults_;
  UniqueFd wake_fd_;
  std::thread handler_;

  std::mutex mutex_;  // guards the following
  std::condition_variable changed_;
  ResidentPages pages_;
  std::vector<uint32_t> free_places_;
  bool places_filled_ = false;                    // the kernel has put pages to free places
  std::deque<std::pair<uint64_t, bool>> single_;  // pages to read alone, and whether to store to
  uint64_t reads_ = 0;                            // in progress
  // Faulting threads ask the handling thread for room.
  uint64_t room_asked_ = 0, room_made_ = 0;
  bool room_refused_ = false;  // the last one that waited got none
  bool stop_ = false;
  uint64_t sync_asked_ = 0, sync_done_ = 0;
  int sync_result_ = 0;
  rocegw_memory_map_statistics counts_{};
};

}  // namespace rocegw::far
