// SPDX-License-Identifier: Apache-2.0
// Costs of programs for the daemon itself: descriptors, heap, waiting events, blocked threads. Each
// is charged to the pool of the program that causes it, and refused or delayed there.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "gateway/session/objects/session_costs.h"
#include "gateway/tenant/heap_cost.h"
#include "tests/unit/session/cm_pair.h"

namespace rocegw::testing {
namespace {

using session::Resource;

constexpr char kCharged[] = "tenants/red/pools/charged";

void SetChargedPool(SessionHost& host, const tenant::Quota& quota, bool trusted = true) {
  tenant::TenantSettings tenant;
  tenant.name = "tenants/red";
  host.server->services().pools.SetTenant(tenant);
  tenant::PoolSettings settings;
  settings.name = kCharged;
  settings.quota = quota;
  settings.trusted = trusted;
  settings.remap_allowed = true;
  host.server->services().pools.SetPool(settings);
}

tenant::Pool& PoolOf(SessionHost& host, const std::string& name = kCharged) {
  return *host.server->services().pools.FindPool(name);
}

int OpenCmChannel(TestClient& client) {
  client.Call<rocegw_object_reply>(
      TestClient::Request<rocegw_object_request>(ROCEGW_MSG_CM_CREATE_CHANNEL));
  return client.error();
}

TEST(Descriptors, PoolHasNoMore_ChannelIsRefusedWithEmfileAndTold) {
  SessionHost host(1);
  tenant::Quota quota;
  quota.peak[Resource::kDescriptors] =
      session::DescriptorsOfSession(1) + 4 * session::kDescriptorsOfPart;
  SetChargedPool(host, quota);
  TestClient red(host, kCharged);
  ASSERT_TRUE(red.Hello());
  ASSERT_NE(red.OpenContext(), 0u);
  int made = 0;
  while (OpenCmChannel(red) == 0) ++made;
  EXPECT_EQ(red.error(), EMFILE);
  EXPECT_LT(made, 4);
  EXPECT_TRUE(host.Told("limit of descriptors reached"));
  EXPECT_GE(PoolOf(host).refused(static_cast<size_t>(Resource::kDescriptors)), 1u);
  TestClient other(host);
  ASSERT_TRUE(other.Hello());
  EXPECT_NE(other.OpenContext(), 0u) << "another pool has its own";
  red.Disconnect();
  host.Settle();
  EXPECT_EQ(PoolOf(host).used(Resource::kDescriptors), 0u);
}

TEST(Descriptors, PoolHasNoneForASession_AttachIsRefusedWithEmfile) {
  SessionHost host(1);
  tenant::Quota quota;
  quota.peak[Resource::kDescriptors] = session::DescriptorsOfSession(1) - 1;
  SetChargedPool(host, quota);
  TestClient red(host, kCharged);
  const auto answer = red.Receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header().error, EMFILE);
}

TEST(Descriptors, OneGreedyPool_LeavesAPartToTheNext) {
  session::Options options;
  SessionHost host(1, options);
  tenant::Registry& pools = host.server->services().pools;
  tenant::Amounts capacity = pools.capacity();
  capacity[Resource::kDescriptors] = 400;
  pools.SetCapacity(capacity);
  SetChargedPool(host, {});
  TestClient red(host, kCharged);
  ASSERT_TRUE(red.Hello());
  while (OpenCmChannel(red) == 0) continue;
  EXPECT_EQ(red.error(), EMFILE);
  EXPECT_GT(PoolOf(host).used(Resource::kDescriptors), 300u);
  EXPECT_TRUE(host.Told("a part that stays free"));
  TestClient other(host);
  ASSERT_TRUE(other.Hello());
  EXPECT_NE(other.OpenContext(), 0u);
}

TEST(Heap, DeepQueues_AreChargedAndRefused) {
  SessionHost host(1);
  tenant::Quota quota;
  quota.peak[Resource::kHeapBytes] = uint64_t{64} << 20;
  SetChargedPool(host, quota);
  TestProgram red(host, kCharged);
  const uint64_t before = PoolOf(host).used(Resource::kHeapBytes);
  auto deep = TestClient::QpRequest(red.pd, red.cq, ROCEGW_QPT_RC, 16384);
  deep.max_send_sge = deep.max_recv_sge = 16;
  const auto first = red.client.Call<rocegw_qp_reply>(deep);
  ASSERT_EQ(red.client.error(), 0);
  const uint64_t one = PoolOf(host).used(Resource::kHeapBytes) - before;
  EXPECT_GT(one, uint64_t{5} << 20) << "the send queue's entries and lists alone";
  int made = 1;
  while (red.client.Call<rocegw_qp_reply>(deep).handle != 0) ++made;
  EXPECT_EQ(red.client.error(), ENOMEM);
  EXPECT_LT(made, 12);
  EXPECT_TRUE(host.Told("limit of heap_bytes reached"));
  const uint64_t held = PoolOf(host).used(Resource::kHeapBytes);
  red.client.Object(ROCEGW_MSG_DESTROY_QP, first.handle);
  EXPECT_LT(PoolOf(host).used(Resource::kHeapBytes), held - (uint64_t{5} << 20));
}

TEST(Heap, ObjectsOfEachKind_AreChargedUntilTheyGo) {
  SessionHost host(1);
  SetChargedPool(host, {});
  TestProgram red(host, kCharged);
  const auto used = [&] { return PoolOf(host).used(Resource::kHeapBytes); };
  const uint64_t before = used();
  const auto mr = red.client.RegMr(red.pd, 4096, 64);
  EXPECT_EQ(used() - before, tenant::HeapCostOf(Resource::kMrs));
  red.client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  EXPECT_EQ(used(), before);
  red.client.Disconnect();
  host.Settle();
  EXPECT_EQ(used(), 0u);
}

TEST(Remapped, PoolHasNoMore_RegionIsRefusedAndTold) {
  SessionHost host(1);
  tenant::Quota quota;
  quota.peak[Resource::kRemappedBytes] = 4 * 4096;
  SetChargedPool(host, quota);
  TestProgram red(host, kCharged);
  auto create = TestClient::Request<rocegw_create_region>(ROCEGW_MSG_CREATE_REGION);
  create.address = 0x10000000;
  create.length = 3 * 4096;
  red.client.Call<rocegw_object_reply>(create);
  ASSERT_EQ(red.client.error(), 0);
  create.address += create.length;
  red.client.Call<rocegw_object_reply>(create);
  EXPECT_EQ(red.client.error(), ENOMEM);
  EXPECT_TRUE(host.Told("limit of remapped_bytes reached"));
  EXPECT_EQ(PoolOf(host).used(Resource::kRegisteredBytes), 3u * 4096)
      << "what was taken for the refused region went back";
}

class WaitingEvents : public ::testing::Test {
 protected:
  size_t Waiting() {
    size_t waiting = 0;
    for (const auto& row : Rows()) waiting += row.waiting_events;
    return waiting;
  }
  std::vector<session::SessionRow> Rows() {
    std::vector<session::SessionRow> rows;
    host.server->Snapshot({.sessions = true}, [&](session::StateSnapshot snapshot) {
      rows = std::move(snapshot.sessions);
    });
    host.Settle();
    return rows;
  }
  // Sends a request without an answer: an error becomes an event.
  static bool SendUnanswered(cm_pair::Program& program, uint32_t id) {
    auto resolve = TestClient::Request<rocegw_cm_resolve_route>(ROCEGW_MSG_CM_RESOLVE_ROUTE);
    resolve.id = id;
    return program.client.SendRaw({reinterpret_cast<uint8_t*>(&resolve), sizeof resolve});
  }

  SessionHost host{1, {}, 4096, {cm_pair::DeviceAt(cm_pair::kFirst)}, cm_pair::FirstAddress};
};

TEST_F(WaitingEvents, RequestsThatFailWithoutEnd_AreNotReadUntilEventsAre) {
  cm_pair::Program program(host);
  const uint32_t id = program.CreateId();
  size_t sent = 0;
  // The daemon stops reading, and the socket fills up.
  for (int round = 0; round < 200; ++round) {
    while (SendUnanswered(program, id)) ++sent;
    host.Settle();
  }
  EXPECT_GT(Waiting(), 500u);
  EXPECT_LT(Waiting(), 2000u);
  EXPECT_LT(sent, 5000u);
  // The program reads: everything continues.
  size_t read = 0;
  for (int idle = 0; idle < 3;) {
    if (program.NextEvent().type != cm_pair::kNoEvent) {
      ++read;
      idle = 0;
    } else {
      host.Settle();
      ++idle;
    }
  }
  EXPECT_EQ(read, sent);
  EXPECT_EQ(Waiting(), 0u);
  EXPECT_NE(program.CreateId(), 0u);
}

TEST_F(WaitingEvents, ManyIdsInTheOrderOfTheVerbs_AreNeverHeldBack) {
  cm_pair::Program program(host);
  constexpr int kIds = 3000;
  for (int i = 0; i < kIds; ++i) {
    program.ResolveAddr(program.CreateId(), cm_pair::Address(cm_pair::kSecond, 7000));
    ASSERT_EQ(program.client.error(), 0) << i;
  }
  EXPECT_GT(Waiting(), 2000u);
  int read = 0;
  while (program.NextEvent().type == cm_pair::kAddrResolved) {
    ++read;
    host.Settle();
  }
  EXPECT_EQ(read, kIds);
}

// Page of this process whose readers block until the userfaultfd is closed.
class BlockingPage {
 public:
  BlockingPage()
      : fault_(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK))),
        page_(static_cast<uint8_t*>(
            ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    uffdio_api api{};
    api.api = UFFD_API;
    uffdio_register range{};
    range.range.start = reinterpret_cast<uint64_t>(page_);
    range.range.len = kBytes;
    range.mode = UFFDIO_REGISTER_MODE_MISSING;
    EXPECT_EQ(::ioctl(fault_.get(), UFFDIO_API, &api), 0);
    EXPECT_EQ(::ioctl(fault_.get(), UFFDIO_REGISTER, &range), 0);
  }
  ~BlockingPage() {
    fault_.Reset();
    ::munmap(page_, kBytes);
  }
  uint64_t address() const { return reinterpret_cast<uint64_t>(page_); }
  bool HasReader() const {
    pollfd fault{fault_.get(), POLLIN, 0};
    return ::poll(&fault, 1, 10000) == 1 && (fault.revents & POLLIN) != 0;
  }
  void Release() { fault_.Reset(); }

 private:
  static constexpr size_t kBytes = 4096;
  UniqueFd fault_;
  uint8_t* page_;
};

TEST(BlockedCopier, SessionThatHasEnded_CountsAndIsShownUntilTheThreadReturns) {
  SessionHost host(1);
  tenant::Quota quota;
  quota.peak[Resource::kSessions] = 1;
  SetChargedPool(host, quota, /*trusted=*/false);
  BlockingPage page;
  {
    // Accessed by process_vm_readv(2): a read of /proc/PID/mem does not wait for a userfaultfd.
    TestClient red(host, kCharged);
    ASSERT_TRUE(red.Hello());
    ASSERT_NE(red.OpenContext(), 0u);
    memory::Copier* const copier = host.workers[0]->sessions.begin()->second.link.copier;
    auto batch = std::make_unique<memory::Batch>();
    batch->staging.resize(64);
    memory::MemoryOp read;
    read.address = page.address();
    read.length = 64;
    read.buffer = batch->staging.data();
    batch->ops.push_back(read);
    ASSERT_TRUE(copier->Submit(0, batch));
    ASSERT_TRUE(page.HasReader());
    host.blocked_calls = 1;
  }
  host.Settle();
  EXPECT_EQ(host.server->session_count(), 0u);
  EXPECT_EQ(PoolOf(host).used(Resource::kSessions), 1u);
  EXPECT_GE(PoolOf(host).used(Resource::kHeapBytes), session::HeapOfCopier(1));
  std::vector<session::SessionRow> rows;
  host.server->Snapshot({.sessions = true}, [&](session::StateSnapshot snapshot) {
    rows = std::move(snapshot.sessions);
  });
  host.Settle();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].blocked_calls, 1u);
  EXPECT_EQ(rows[0].pool, kCharged);
  {
    TestClient next(host, kCharged);
    EXPECT_FALSE(next.Hello()) << "the pool's only session is not free";
    TestClient other(host);
    EXPECT_TRUE(other.Hello()) << "another pool's are";
  }
  page.Release();
  while (PoolOf(host).used(Resource::kSessions) != 0) host.RunControl();
  for (size_t i = 0; i < tenant::kResources; ++i)
    EXPECT_EQ(PoolOf(host).used(static_cast<Resource>(i)), 0u)
        << tenant::NameOf(static_cast<Resource>(i));
  TestClient next(host, kCharged);
  EXPECT_TRUE(next.Hello());
}

}  // namespace
}  // namespace rocegw::testing
