// SPDX-License-Identifier: Apache-2.0
// Common parts of remapping tests: a scripted daemon that allows it, a protection domain, memory
// that unmaps itself. Needs a userfaultfd, which root has.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "gateway/client/memory/memory_map.h"
#include "tests/unit/client/daemon/fake_daemon.h"

namespace rocegw::testing {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kPage = 4096;
constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

// Private anonymous memory that the kernel cannot merge with its neighbours.
class Memory {
 public:
  // The room behind the memory.
  enum class Behind : uint8_t {
    kFree,
    // No other thread (ThreadSanitizer has one of its own) can map anything there before
    // FreeBehind. It is read-only: without access it would look like the guard of a stack.
    kReserved,
  };

  explicit Memory(size_t size, int protection = PROT_READ | PROT_WRITE,
                  Behind behind = Behind::kFree)
      : size_(size), whole_(static_cast<uint8_t*>(Map(nullptr, size + 4 * kGap))) {
    munmap(whole_, 2 * kGap);
    if (behind == Behind::kFree) FreeBehind(2 * kGap);
    mprotect(data() + size_ + freed_, 2 * kGap - freed_, PROT_READ);
    if (protection != (PROT_READ | PROT_WRITE)) mprotect(data(), size, protection);
  }
  ~Memory() {
    munmap(data(), size_);
    if (freed_ != 2 * kGap) munmap(data() + size_ + freed_, 2 * kGap - freed_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  uint8_t* data() { return whole_ + 2 * kGap; }
  uint8_t& operator[](size_t i) { return data()[i]; }
  size_t size() const { return size_; }
  // Leaves room in which the memory may grow.
  void FreeBehind(size_t size) {
    munmap(data() + size_, size);
    freed_ = size;
  }

  static void* Map(void* at, size_t size, int flags = 0) {
    return mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  }

 private:
  static constexpr size_t kGap = size_t{2} << 20;
  size_t size_;
  size_t freed_ = 0;
  uint8_t* whole_;
};

class RemapTest : public ::testing::Test {
 protected:
  void SetUp() override {
    FakeOptions options;
    options.welcome_flags = ROCEGW_WELCOME_REMAP;
    Start(options);
  }
  void Start(const FakeOptions& options) {
    daemon_ = std::make_unique<FakeDaemon>(options);
    setenv("ROCEGW_SOCKET", daemon_->socket_path().c_str(), 1);
    // The rule about short registrations counts over the whole process.
    setenv("ROCEGW_REMAP", "always", 1);
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    ASSERT_NE(list, nullptr);
    for (int i = 0; i < count; ++i) {
      if (strcmp(ibv_get_device_name(list[i]), "rocegw0") == 0) context_ = ibv_open_device(list[i]);
    }
    ibv_free_device_list(list);
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    ASSERT_NE(pd_, nullptr);
  }
  void TearDown() override {
    if (pd_ != nullptr) ibv_dealloc_pd(pd_);
    if (context_ != nullptr) ibv_close_device(context_);
    daemon_.reset();
    unsetenv("ROCEGW_SOCKET");
    unsetenv("ROCEGW_REMAP");
  }

  ibv_mr* Register(void* address, size_t length, int access = kAllAccess) {
    ibv_mr* mr = ibv_reg_mr(pd_, address, length, access);
    EXPECT_NE(mr, nullptr) << strerror(errno);
    return mr;
  }
  // Returns the library's message about the latest registration.
  rocegw_reg_mr Told() { return daemon_->Last(ROCEGW_MSG_REG_MR).As<rocegw_reg_mr>(); }
  // Registers and deregisters; returns the reason for not moving, 0: moved.
  uint32_t KeptBecause(void* address, size_t length, int access = kAllAccess) {
    ibv_mr* mr = Register(address, length, access);
    const rocegw_reg_mr told = Told();
    EXPECT_EQ(told.region == 0, told.kept != 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    return told.kept;
  }
  FakeRegion OnlyRegion() {
    const auto regions = daemon_->Regions();
    EXPECT_EQ(regions.size(), 1u);
    return regions.empty() ? FakeRegion{} : regions.front();
  }
  static client::MappedArea Area(const void* address) {
    client::MappedArea area{};
    EXPECT_EQ(client::FindMappedArea(reinterpret_cast<uint64_t>(address), &area), 0);
    return area;
  }
  static bool IsPrivate(const void* address) {
    const client::MappedArea area = Area(address);
    return !area.shared && area.inode == 0;
  }

  std::unique_ptr<FakeDaemon> daemon_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
};

}  // namespace rocegw::testing
