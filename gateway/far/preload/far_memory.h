// SPDX-License-Identifier: Apache-2.0
// Remote memory of a program that does not know of it: a session and a window, and the ranges of it
// that were given to the program. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gateway/far/session/session.h"
#include "gateway/far/window/range_map.h"
#include "gateway/far/window/window.h"

namespace rocegw::far {

// From the environment; rocegw-run(1) says what each means.
struct FarSettings {
  double fraction = 0;              // ROCEGW_FAR; 0: off
  std::vector<std::string> donors;  // ROCEGW_FAR_DONORS, separated by commas
  std::string donors_dir;           // the agent there names them; empty: they are named above
  uint64_t size = 0;                // ROCEGW_FAR_SIZE
  uint32_t replicas = 1;            // ROCEGW_FAR_REPLICAS
  uint64_t least = 0;               // ROCEGW_FAR_LEAST: smaller mappings stay here
  bool report = false;              // ROCEGW_FAR_REPORT: counts on stderr at the end

  static FarSettings FromEnvironment();
};

class FarMemory {
 public:
  static constexpr uint64_t kPage = Window::kPage;
  // The library and the verbs libraries need smaller pieces themselves, as a rule.
  static constexpr uint64_t kFewestLeast = 64 << 10;

  static StatusOr<std::unique_ptr<FarMemory>> Open(const FarSettings& settings);

  bool Contains(const void* at) const {
    const auto* address = static_cast<const uint8_t*>(at);
    return address >= begin_ && address < begin_ + bytes_;
  }
  const uint8_t* begin() const { return begin_; }
  const uint8_t* end() const { return begin_ + bytes_; }

  // Zeroed memory; nullptr: no room is left, or the memory is closed.
  void* Map(size_t bytes);
  // Nothing more becomes remote.
  void Close();
  // In a child of fork, before other threads start: the window is not there. Its addresses stay
  // taken and without access, except those of moved pieces, which the child has inherited.
  void BecomeChild();
  bool is_child() const { return is_child_; }

  // Stretch of the program's memory.
  struct Piece {
    enum class Kind : uint8_t {
      kElsewhere,  // not in the window
      kRemote,     // given to the program
      kMoved,      // moved back: memory of this host, at an address of the window
      kFree,       // in the window, and nothing to the program
    };
    uint8_t* at;
    size_t bytes;
    Kind kind;
  };
  // The pieces that whole pages consist of, in their order.
  std::vector<Piece> PiecesOf(void* at, size_t bytes);
  // Returns a piece to the window. Remote or moved.
  void Unmap(const Piece& piece);
  // The kernel has moved memory away from there: the address is the window's again, unless other
  // memory is there already.
  void Vacated(const Piece& piece);
  // The following get remote pieces.
  void Discard(const Piece& piece);
  // Gives a free piece to the kernel, until it is unmapped.
  void Withdraw(const Piece& piece);
  // The pages become memory of this host, where they are, until they are unmapped. ENOMEM, EIO.
  int MoveBack(const Piece& piece);

  // Blocks of malloc: a mapping and its length. 0: no block begins there.
  void* Allocate(size_t bytes);
  size_t SizeOf(const void* block);
  void Free(void* block);

  int descriptor() const { return window_->descriptor(); }
  std::string Report();

 private:
  FarMemory(const FarSettings& settings, std::unique_ptr<Session> session);
  Status OpenWindow();
  uint64_t OffsetOf(const void* at) const {
    return static_cast<uint64_t>(static_cast<const uint8_t*>(at) - begin_);
  }
  void SetResidentLocked();
  void Set(const Piece& piece, RangeMap::Use use);
  void Reclaim(const Piece& piece, int fixed);

  const double fraction_;
  const std::unique_ptr<Session> session_;
  const uint64_t bytes_;
  std::unique_ptr<Window> window_;
  uint8_t* begin_ = nullptr;
  bool is_child_ = false;

  std::mutex mutex_;  // guards the following
  RangeMap ranges_;
  std::map<uintptr_t, size_t> blocks_;
  uint64_t most_mapped_ = 0;
  bool closed_ = false;
};

}  // namespace rocegw::far
