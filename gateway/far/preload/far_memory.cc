// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/preload/far_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "gateway/far/preload/next.h"
#include "gateway/far/session/naming/donor_name.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kDefaultSize = uint64_t{1} << 30;
constexpr uint64_t kDefaultLeast = 1 << 20;
// The handling thread reads ahead 64 pages and evicts as many at a time.
constexpr uint64_t kFewestResident = 4 << 20;
constexpr uint64_t kSlab = 16 << 20;
constexpr uint64_t kPool = 4 << 20;

uint64_t PagesUp(uint64_t bytes) {
  return (bytes + FarMemory::kPage - 1) / FarMemory::kPage * FarMemory::kPage;
}

uint64_t Number(const char* variable, uint64_t otherwise) {
  const char* text = secure_getenv(variable);
  return text != nullptr && *text != 0 ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace

FarSettings FarSettings::FromEnvironment() {
  FarSettings settings;
  const char* fraction = secure_getenv("ROCEGW_FAR");
  if (fraction == nullptr) return settings;
  settings.fraction = std::clamp(std::strtod(fraction, nullptr), 0.0, 1.0);
  const char* donors = secure_getenv("ROCEGW_FAR_DONORS");
  for (const char* at = donors != nullptr ? donors : ""; *at != 0;) {
    const size_t length = std::strcspn(at, ",");
    if (length != 0) settings.donors.emplace_back(at, length);
    at += length + (at[length] != 0 ? 1 : 0);
  }
  const char* donors_dir = secure_getenv("ROCEGW_FAR_DONORS_DIR");
  settings.donors_dir = donors_dir != nullptr ? donors_dir : "";
  settings.size = Number("ROCEGW_FAR_SIZE", kDefaultSize);
  settings.replicas = static_cast<uint32_t>(Number("ROCEGW_FAR_REPLICAS", 1));
  settings.least = std::max(Number("ROCEGW_FAR_LEAST", kDefaultLeast), FarMemory::kFewestLeast);
  settings.report = Number("ROCEGW_FAR_REPORT", 0) != 0;
  return settings;
}

StatusOr<std::unique_ptr<FarMemory>> FarMemory::Open(const FarSettings& settings) {
  const auto donors = DonorList::Read(settings.donors);
  if (!donors.ok()) return donors.status();
  rocegw_memory_options options = ROCEGW_MEMORY_DEFAULTS;
  donors.value().NameIn(options);
  if (!settings.donors_dir.empty()) options.donors_dir = settings.donors_dir.c_str();
  options.size = settings.size;
  options.replicas = settings.replicas;
  options.slab_bytes = kSlab;
  options.pool_bytes = kPool;
  auto checked = CheckOptions(options, sizeof options);
  if (!checked.ok()) return checked.status();
  // Programs exit while their threads use the memory. The next one may need the leases.
  checked.value().brief = true;
  auto session = Session::Open(checked.value());
  if (!session.ok()) return session.status();
  std::unique_ptr<FarMemory> memory(new FarMemory(settings, std::move(session.value())));
  if (Status status = memory->OpenWindow(); !status.ok()) return status;
  return memory;
}

FarMemory::FarMemory(const FarSettings& settings, std::unique_ptr<Session> session)
    : fraction_(settings.fraction),
      session_(std::move(session)),
      bytes_(session_->dispatcher().size()),
      ranges_(bytes_) {}

Status FarMemory::OpenWindow() {
  window_ = std::make_unique<Window>(session_->dispatcher(), 0, bytes_, kFewestResident,
                                     Window::Content::kZero);
  if (Status status = window_->Open(); !status.ok()) return status;
  if (!window_->serves_system_calls()) {
    return {EPERM,
            "system calls could not use remote memory: root, CAP_SYS_PTRACE, access to "
            "/dev/userfaultfd or vm.unprivileged_userfaultfd=1 is needed"};
  }
  if (!window_->keeps_pinned_pages()) {
    return {ENOSYS,
            "the kernel cannot move pages (Linux 6.8): what a device writes to memory "
            "(O_DIRECT) could be lost"};
  }
  begin_ = window_->address();
  // Pages that the program has not, or no more, are no memory to it.
  Next().mprotect(begin_, bytes_, PROT_NONE);
  return OkStatus();
}

// With the lock.
void FarMemory::SetResidentLocked() {
  const uint64_t mapped = ranges_.Bytes(RangeMap::Use::kGiven);
  most_mapped_ = std::max(most_mapped_, mapped);
  const auto here = static_cast<uint64_t>(static_cast<double>(mapped) * (1 - fraction_));
  window_->SetResident(std::max(here, kFewestResident));
}

void* FarMemory::Map(size_t bytes) {
  bytes = PagesUp(bytes);
  const std::lock_guard lock(mutex_);
  if (closed_) return nullptr;
  const auto offset = ranges_.Allocate(bytes);
  if (!offset) return nullptr;
  if (Next().mprotect(begin_ + *offset, bytes, PROT_READ | PROT_WRITE) != 0) {
    ranges_.Set(*offset, *offset + bytes, RangeMap::Use::kFree);
    return nullptr;
  }
  SetResidentLocked();
  return begin_ + *offset;
}

std::vector<FarMemory::Piece> FarMemory::PiecesOf(void* at, size_t bytes) {
  auto* from = static_cast<uint8_t*>(at);
  uint8_t* const to = from + PagesUp(bytes);
  std::vector<Piece> pieces;
  if (from < begin_) {
    uint8_t* const until = std::min(to, begin_);
    pieces.push_back({from, static_cast<size_t>(until - from), Piece::Kind::kElsewhere});
    from = until;
  }
  if (from < to && from < begin_ + bytes_) {
    const std::lock_guard lock(mutex_);
    for (const RangeMap::Range& range :
         ranges_.Get(OffsetOf(from), OffsetOf(std::min(to, begin_ + bytes_)))) {
      const Piece::Kind kind = range.use == RangeMap::Use::kGiven   ? Piece::Kind::kRemote
                               : range.use == RangeMap::Use::kMoved ? Piece::Kind::kMoved
                                                                    : Piece::Kind::kFree;
      pieces.push_back({begin_ + range.begin, range.end - range.begin, kind});
    }
    from = std::min(to, begin_ + bytes_);
  }
  if (from < to) {
    pieces.push_back({from, static_cast<size_t>(to - from), Piece::Kind::kElsewhere});
  }
  return pieces;
}

void FarMemory::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

// Another thread of the parent may have been changing what the lock guards: it is made anew.
void FarMemory::BecomeChild() {
  is_child_ = true;
  const bool consistent = mutex_.try_lock();
  new (&mutex_) std::mutex;
  new (&ranges_) RangeMap(bytes_);
  if (!consistent) new (&blocks_) std::map<uintptr_t, size_t>;
  closed_ = true;
  for (uint64_t begin = 0; begin < bytes_;) {
    const bool moved = window_->HasLeft(begin / kPage);
    uint64_t end = begin + kPage;
    while (end < bytes_ && window_->HasLeft(end / kPage) == moved) end += kPage;
    ranges_.Set(begin, end, moved ? RangeMap::Use::kMoved : RangeMap::Use::kGiven);
    // Nothing else may get an address of the window. Moved pieces are there.
    Next().mmap(begin_ + begin, end - begin, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    begin = end;
  }
}

void FarMemory::Set(const Piece& piece, RangeMap::Use use) {
  const std::lock_guard lock(mutex_);
  const uint64_t begin = OffsetOf(piece.at);
  ranges_.Set(begin, begin + piece.bytes, use);
  SetResidentLocked();
}

void FarMemory::Unmap(const Piece& piece) {
  if (piece.kind == Piece::Kind::kMoved) {
    Reclaim(piece, MAP_FIXED);
    return;
  }
  if (!is_child_) {
    const uint64_t begin = OffsetOf(piece.at);
    // The thread that handles faults copies pages only while they are resident: none is from here
    // on.
    window_->Discard(begin, begin + piece.bytes);
    Next().mprotect(piece.at, piece.bytes, PROT_NONE);
  }
  Set(piece, RangeMap::Use::kFree);
}

void FarMemory::Vacated(const Piece& piece) { Reclaim(piece, MAP_FIXED_NOREPLACE); }

// A piece that the window does not get back stays a moved one, for good.
void FarMemory::Reclaim(const Piece& piece, int fixed) {
  const uint64_t begin = OffsetOf(piece.at);
  void* fresh = Next().mmap(piece.at, piece.bytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
  if (fresh == MAP_FAILED) return;
  if (is_child_ || window_->Rejoin(begin, begin + piece.bytes)) Set(piece, RangeMap::Use::kFree);
}

void FarMemory::Discard(const Piece& piece) {
  if (is_child_) return;
  const uint64_t begin = OffsetOf(piece.at);
  window_->Discard(begin, begin + piece.bytes);
}

void FarMemory::Withdraw(const Piece& piece) {
  const uint64_t begin = OffsetOf(piece.at);
  if (!is_child_) window_->Leave(begin, begin + piece.bytes);
  Set(piece, RangeMap::Use::kMoved);
}

int FarMemory::MoveBack(const Piece& piece) {
  if (is_child_) return ENOMEM;
  const uint64_t begin = OffsetOf(piece.at);
  const int error = -window_->Leave(begin, begin + piece.bytes);
  if (error == 0) Set(piece, RangeMap::Use::kMoved);
  return error;
}

void* FarMemory::Allocate(size_t bytes) {
  void* block = Map(bytes);
  if (block == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  blocks_[reinterpret_cast<uintptr_t>(block)] = PagesUp(bytes);
  return block;
}

size_t FarMemory::SizeOf(const void* block) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<uintptr_t>(block));
  return found != blocks_.end() ? found->second : 0;
}

void FarMemory::Free(void* block) {
  size_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(reinterpret_cast<uintptr_t>(block));
    if (found == blocks_.end()) {
      if (is_child_) return;
      std::fputs("rocegw-far: free(): invalid pointer\n", stderr);
      std::abort();
    }
    bytes = found->second;
    blocks_.erase(found);
  }
  for (const Piece& piece : PiecesOf(block, bytes)) Unmap(piece);
}

std::string FarMemory::Report() {
  const rocegw_memory_map_statistics pages = window_->Statistics();
  const std::lock_guard lock(mutex_);
  constexpr uint64_t kMebi = 1 << 20;
  char text[256];
  std::snprintf(text, sizeof text,
                "at most %llu MiB mapped, %llu faults, %llu pages read, %llu written, %llu lost, "
                "%llu MiB moved back",
                static_cast<unsigned long long>(most_mapped_ / kMebi),
                static_cast<unsigned long long>(pages.faults),
                static_cast<unsigned long long>(pages.read),
                static_cast<unsigned long long>(pages.written_back),
                static_cast<unsigned long long>(pages.lost),
                static_cast<unsigned long long>(ranges_.Bytes(RangeMap::Use::kMoved) / kMebi));
  return text;
}

}  // namespace rocegw::far
