// SPDX-License-Identifier: Apache-2.0
// A queue pair that comes out of a reserve allocates nothing on its way to RTS: the functions that
// get memory are replaced in this program and counted while the gateway runs.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "tests/support/worker_host.h"

// The C library's own, which its wrappers lead to.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace rocegw::testing {
namespace {

struct Counts {
  uint64_t allocations = 0;
  uint64_t mappings = 0;
  uint64_t files = 0;  // in memory
  auto operator<=>(const Counts&) const = default;
};
Counts g_counts;
bool g_counting = false;

}  // namespace
}  // namespace rocegw::testing

using rocegw::testing::g_counting;
using rocegw::testing::g_counts;

extern "C" {

void* malloc(size_t size) {
  g_counts.allocations += g_counting ? 1 : 0;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  g_counts.allocations += g_counting ? 1 : 0;
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  g_counts.allocations += g_counting ? 1 : 0;
  return __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  g_counts.allocations += g_counting ? 1 : 0;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}
void* mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) noexcept {
  g_counts.mappings += g_counting ? 1 : 0;
  return reinterpret_cast<void*>(
      ::syscall(SYS_mmap, address, length, protection, flags, fd, offset));
}
int memfd_create(const char* name, unsigned flags) noexcept {
  g_counts.files += g_counting ? 1 : 0;
  return static_cast<int>(::syscall(SYS_memfd_create, name, flags));
}

}  // extern "C"

namespace rocegw::testing {
namespace {

constexpr char kPool[] = "tenants/t/pools/p";
constexpr uint32_t kReady = 40;  // more than one pair of chunks holds
constexpr uint32_t kDepth = 128;

class ReadyAllocations : public ::testing::Test {
 protected:
  void Start(uint32_t ready_qps) {
    session::Options options;
    // Filling up is not what is counted here.
    options.refill_after = Seconds(3600);
    host_.emplace(2, options, false);
    tenant::PoolSettings pool;
    pool.name = kPool;
    pool.trusted = true;
    pool.ready_qps = ready_qps;
    host_->SetPool(pool);
    // The last turn finds nothing to do. While it is due, taking something does not put it off.
    while (host_->server->services().reserves.refill_due()) host_->Turn();
    if (ready_qps != 0) {
      ASSERT_EQ(Reserve()->ready(), ready_qps);
      ASSERT_EQ(Reserve()->bytes(), tenant::ReserveBytes(ready_qps));
    }
    program_ = host_->Begin(kPool);
    ASSERT_EQ(program_.client->error(), 0);
    // The test's own side of the connection may allocate.
    counted_ = std::make_unique<TestClient>(
        [this] {
          g_counting = true;
          host_->Settle();
          g_counting = false;
        },
        program_.client->Release());
    g_counts = {};
  }
  std::shared_ptr<session::ReadyReserve> Reserve() {
    return host_->server->services().reserves.Of(*host_->server->services().pools.FindPool(kPool));
  }
  // What one queue pair costs until it can send.
  Counts SetUpOne() {
    g_counts = {};
    const auto qp = counted_->CreateQp(program_.pd, program_.cq, ROCEGW_QPT_RC, kDepth);
    EXPECT_EQ(counted_->error(), 0);
    EXPECT_EQ(WorkerHost::Connect(*counted_, qp.handle), 0);
    const Counts counts = g_counts;
    auto query = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_QUERY_QP);
    query.handle = qp.handle;
    EXPECT_EQ(counted_->Call<rocegw_query_qp_reply>(query).attr.qp_state,
              static_cast<uint32_t>(verbs::QpState::kRts));
    return counts;
  }

  std::optional<WorkerHost> host_;
  WorkerHost::Program program_;
  std::unique_ptr<TestClient> counted_;
};

TEST_F(ReadyAllocations, WithinTheReserve_None) {
  Start(kReady);
  for (uint32_t i = 0; i < kReady; ++i) EXPECT_EQ(SetUpOne(), Counts()) << i;
  EXPECT_EQ(Reserve()->hits(), kReady);
  EXPECT_EQ(Reserve()->misses(), 0u);
  EXPECT_EQ(Reserve()->ready(), 0u);
}

TEST_F(ReadyAllocations, BeyondTheReserve_Some) {
  Start(1);
  EXPECT_EQ(SetUpOne(), Counts());
  EXPECT_GT(SetUpOne().allocations, 0u);
  EXPECT_EQ(Reserve()->misses(), 1u);
}

TEST_F(ReadyAllocations, WithoutReserve_Some) {
  Start(0);
  Counts all;
  for (uint32_t i = 0; i < kReady; ++i) {
    const Counts counts = SetUpOne();
    all.allocations += counts.allocations;
    all.mappings += counts.mappings;
    all.files += counts.files;
  }
  EXPECT_GT(all.allocations, kReady);
  EXPECT_GT(all.mappings, 0u);
  EXPECT_GT(all.files, 0u);
}

}  // namespace
}  // namespace rocegw::testing
