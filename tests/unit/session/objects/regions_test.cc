// SPDX-License-Identifier: Apache-2.0
// Memory regions through the attach protocol: registered, changed, remapped, refused.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "gateway/verbs/types.h"
#include "tests/unit/session/objects/objects_fixture.h"

namespace rocegw::testing {
namespace {

TEST_F(Objects, RegMr_OneKeyForBothKnownToAllWorkers) {
  uint8_t memory[64];
  const auto mr = client.RegMr(pd, reinterpret_cast<uint64_t>(memory), sizeof memory);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(mr.lkey, mr.rkey);
  EXPECT_EQ(mr.way, static_cast<uint32_t>(ROCEGW_MEMORY_CROSS));
  for (size_t w = 0; w < 2; ++w) {
    ASSERT_TRUE(On(w).mrs.contains(mr.rkey));
    const verbs::RegionConfig& config = On(w).mrs[mr.rkey];
    EXPECT_EQ(config.address, reinterpret_cast<uint64_t>(memory));
    EXPECT_EQ(config.length, sizeof memory);
    EXPECT_EQ(config.pd, pd);
    EXPECT_EQ(config.access, 7u);
    EXPECT_EQ(config.mr_handle, mr.handle);
  }
  client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  EXPECT_EQ(client.error(), 0);
  for (size_t w = 0; w < 2; ++w) EXPECT_TRUE(On(w).mrs.empty());
  client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  EXPECT_EQ(client.error(), EINVAL);
}

TEST_F(Objects, ReregMr_ChangesEverythingUnderTheSameKey) {
  const uint32_t other = client.AllocPd(context);
  const auto mr = client.RegMr(pd, 4096, 64);
  const auto bytes = [this] {
    return host.server->services().pools.gateway().used(session::Resource::kRegisteredBytes);
  };
  for (const uint64_t length : {100, 64, 10}) {
    const auto again = client.Call<rocegw_mr_reply>(
        Rereg(mr.handle, other, 8192, length, verbs::kAccessRemoteRead));
    ASSERT_EQ(client.error(), 0);
    EXPECT_EQ(again.handle, mr.handle);
    EXPECT_EQ(again.lkey, mr.lkey);
    EXPECT_EQ(again.rkey, mr.rkey);
    EXPECT_EQ(bytes(), length) << "counted once";
    for (size_t w = 0; w < 2; ++w) {
      ASSERT_EQ(On(w).mrs.size(), 1u);
      const verbs::RegionConfig& config = On(w).mrs[mr.rkey];
      EXPECT_EQ(config.pd, other);
      EXPECT_EQ(config.address, 8192u);
      EXPECT_EQ(config.length, length);
      EXPECT_EQ(config.access, verbs::kAccessRemoteRead);
    }
  }
  EXPECT_EQ(host.server->services().pools.gateway().used(session::Resource::kMrs), 1u);
  client.Object(ROCEGW_MSG_DEALLOC_PD, other);
  EXPECT_EQ(client.error(), EBUSY);
  client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
  EXPECT_EQ(client.error(), 0);
  client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  client.Object(ROCEGW_MSG_DEALLOC_PD, other);
  EXPECT_EQ(client.error(), 0);
  EXPECT_EQ(bytes(), 0u);
}

TEST_F(Objects, ReregMr_Refused_TheRegionIsAsItWas) {
  const auto mr = client.RegMr(pd, 4096, 64, 7 | verbs::kAccessMwBind);
  const uint32_t elsewhere = client.AllocPd(client.OpenContext());
  const struct {
    const char* what;
    rocegw_rereg_mr request;
  } cases[] = {
      {"no such region", Rereg(mr.handle + 1, pd, 4096, 64, 7)},
      {"no such PD", Rereg(mr.handle, pd + 100, 4096, 64, 7)},
      {"PD of another context", Rereg(mr.handle, elsewhere, 4096, 64, 7)},
      {"empty", Rereg(mr.handle, pd, 4096, 0, 7)},
      {"wraps", Rereg(mr.handle, pd, ~uint64_t{0} - 10, 64, 7)},
      {"remote write alone", Rereg(mr.handle, pd, 4096, 64, verbs::kAccessRemoteWrite)},
  };
  for (const auto& c : cases) {
    client.Call<rocegw_mr_reply>(c.request);
    EXPECT_EQ(client.error(), EINVAL) << c.what;
  }
  const verbs::RegionConfig& config = On(0).mrs[mr.rkey];
  ASSERT_TRUE(config.windows->Enter());
  client.Call<rocegw_mr_reply>(Rereg(mr.handle, pd, 8192, 128, 7));
  EXPECT_EQ(client.error(), EBUSY) << "a window is bound to it";
  EXPECT_EQ(host.server->services().pools.gateway().used(session::Resource::kRegisteredBytes), 64u);
  EXPECT_EQ(config.address, 4096u);
  EXPECT_EQ(config.length, 64u);
  config.windows->Leave();
  client.Call<rocegw_mr_reply>(Rereg(mr.handle, pd, 8192, 128, 7 | verbs::kAccessMwBind));
  EXPECT_EQ(client.error(), 0);
  EXPECT_TRUE(On(0).mrs[mr.rkey].windows->Enter()) << "windows may be bound to it again";
  On(0).mrs[mr.rkey].windows->Leave();
}

// A worker that refuses the change must not keep another region than the other workers.
class RefusedRereg : public Objects {
 protected:
  void SetUp() override {
    Objects::SetUp();
    other = client.AllocPd(context);
    mr = client.RegMr(pd, 4096, 64, 7 | verbs::kAccessMwBind);
  }
  uint64_t Used(session::Resource resource) {
    return host.server->services().pools.gateway().used(resource);
  }
  int Change(uint64_t length, uint32_t access = 7) {
    client.Call<rocegw_mr_reply>(Rereg(mr.handle, other, 8192, length, access));
    return client.error();
  }
  void Refuse(size_t worker, int times) {
    host.workers[worker]->fail_next = ENOSPC;
    host.workers[worker]->fail_times = times;
  }
  // Checks that all workers have the region of 64 bytes.
  void ExpectOld() {
    for (size_t w = 0; w < 2; ++w) {
      ASSERT_TRUE(On(w).mrs.contains(mr.rkey)) << w;
      const verbs::RegionConfig& config = On(w).mrs[mr.rkey];
      EXPECT_EQ(config.address, 4096u) << w;
      EXPECT_EQ(config.length, 64u) << w;
      EXPECT_EQ(config.pd, pd) << w;
    }
    EXPECT_EQ(Used(session::Resource::kRegisteredBytes), 64u);
  }
  // Checks that the region can be destroyed, and that nothing is left then.
  void ExpectEnds() {
    client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
    EXPECT_EQ(client.error(), 0);
    EXPECT_TRUE(On(0).mrs.empty() && On(1).mrs.empty());
    EXPECT_EQ(Used(session::Resource::kRegisteredBytes), 0u);
    EXPECT_EQ(Used(session::Resource::kMrs), 0u);
    for (const uint32_t one : {pd, other}) {
      client.Object(ROCEGW_MSG_DEALLOC_PD, one);
      EXPECT_EQ(client.error(), 0);
    }
  }

  uint32_t other = 0;
  rocegw_mr_reply mr{};
};

TEST_F(RefusedRereg, OfOneWorker_AllKeepTheOldRegion) {
  for (const size_t refuses : {0u, 1u}) {
    for (const uint64_t length : {128, 16}) {
      Refuse(refuses, 1);
      EXPECT_EQ(Change(length), ENOSPC);
      ExpectOld();
    }
  }
  ASSERT_TRUE(On(0).mrs[mr.rkey].windows->Enter()) << "windows may be bound to it as before";
  On(0).mrs[mr.rkey].windows->Leave();
  EXPECT_EQ(On(0).mrs[mr.rkey].windows, On(1).mrs[mr.rkey].windows);
  EXPECT_EQ(Change(100), 0) << "later changes are possible";
  EXPECT_EQ(On(1).mrs[mr.rkey].length, 100u);
  ExpectEnds();
}

TEST_F(RefusedRereg, OfTheOldRegionToo_NoWorkerHasTheRegion) {
  Refuse(1, 2);
  EXPECT_EQ(Change(128), EIO) << "the region may not be used any more";
  for (size_t w = 0; w < 2; ++w) EXPECT_FALSE(On(w).mrs.contains(mr.rkey)) << w;
  EXPECT_EQ(Change(100), EIO);
  ExpectEnds();
}

// A window that was bound to the new region on a worker that has it.
TEST_F(RefusedRereg, WithAWindowOfTheNewRegion_NoWorkerHasTheRegion) {
  Refuse(1, 1);
  verbs::BoundWindows* bound = nullptr;
  host.workers[0]->on_relink = [&bound](const verbs::RegionConfig& config) {
    bound = config.windows;
    ASSERT_TRUE(bound->Enter());
  };
  EXPECT_EQ(Change(128, 7 | verbs::kAccessMwBind), EIO);
  for (size_t w = 0; w < 2; ++w) EXPECT_FALSE(On(w).mrs.contains(mr.rkey)) << w;
  client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  EXPECT_EQ(client.error(), EBUSY) << "a window is bound to it";
  bound->Leave();
  ExpectEnds();
}

TEST_F(Objects, RegMr_RefusesWhatMakesNoSense) {
  const struct {
    const char* what;
    uint32_t pd;
    uint64_t address, length;
    uint32_t access;
  } cases[] = {
      {"no such PD", pd + 100, 4096, 64, 0},
      {"empty", pd, 4096, 0, 0},
      {"wraps", pd, ~uint64_t{0} - 10, 64, 0},
      {"too long", pd, 0, uint64_t{1} << 60, 0},
      {"remote write without local write", pd, 4096, 64, verbs::kAccessRemoteWrite},
      {"remote atomic without local write", pd, 4096, 64, verbs::kAccessRemoteAtomic},
      {"unknown access bit", pd, 4096, 64, 1u << 31},
  };
  for (const auto& c : cases) {
    client.RegMr(c.pd, c.address, c.length, c.access);
    EXPECT_EQ(client.error(), EINVAL) << c.what;
  }
  EXPECT_TRUE(On(0).mrs.empty());
  EXPECT_EQ(host.server->services().pools.gateway().used(session::Resource::kMrs), 0u);
  EXPECT_EQ(host.server->services().pools.gateway().used(session::Resource::kRegisteredBytes), 0u);
}

TEST_F(Objects, RegMr_Implicit_IsEverything_AndCountsAsNoBytes) {
  constexpr uint32_t kOnDemand = 64;
  client.RegMr(pd, 0, UINT64_MAX, verbs::kAccessLocalWrite);
  EXPECT_EQ(client.error(), EINVAL) << "not on demand";
  client.RegMr(pd, 0, UINT64_MAX - 1, kOnDemand);
  EXPECT_EQ(client.error(), EINVAL) << "not everything";
  client.RegMr(pd, 1, UINT64_MAX - 1, kOnDemand);
  EXPECT_EQ(client.error(), EINVAL);
  const auto mr = client.RegMr(pd, 0, UINT64_MAX, verbs::kAccessLocalWrite | kOnDemand);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(On(1).mrs[mr.rkey].length, UINT64_MAX);
  EXPECT_EQ(On(1).mrs[mr.rkey].access, uint32_t{verbs::kAccessLocalWrite});
  EXPECT_TRUE(On(1).mrs[mr.rkey].Holds(0x7FFF'0000'0000, 1 << 30));
  const auto used = [this](session::Resource what) {
    return host.server->services().pools.gateway().used(what);
  };
  EXPECT_EQ(used(session::Resource::kRegisteredBytes), 0u);
  EXPECT_EQ(used(session::Resource::kMrs), 1u);
  client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  EXPECT_EQ(client.error(), 0);
  EXPECT_EQ(used(session::Resource::kMrs), 0u);
}

TEST_F(Objects, RegMr_WorkerRefuses_NothingRemains) {
  host.workers[1]->fail_next = ENOSPC;
  client.RegMr(pd, 4096, 64);
  EXPECT_EQ(client.error(), ENOSPC);
  for (size_t w = 0; w < 2; ++w) EXPECT_TRUE(On(w).mrs.empty());
  EXPECT_EQ(host.server->services().pools.gateway().used(session::Resource::kMrs), 0u);
  EXPECT_EQ(host.server->services().keys.in_use(), 0u);
}

TEST_F(Objects, Region_RegistersAsRemappedAndBothSeeIt) {
  auto create = TestClient::Request<rocegw_create_region>(ROCEGW_MSG_CREATE_REGION);
  create.address = 0x7F0000000000;
  create.length = 1 << 20;
  const auto region = client.Call<rocegw_object_reply>(create);
  ASSERT_EQ(client.error(), 0);
  const UniqueFd memory = std::move(client.received_fd);
  auto reg = TestClient::Request<rocegw_reg_mr>(ROCEGW_MSG_REG_MR);
  reg.pd = pd;
  reg.access = 7;
  reg.address = reg.iova = create.address + 4096;
  reg.length = 8192;
  reg.region = region.handle;
  reg.region_offset = 4096;
  const auto mr = client.Call<rocegw_mr_reply>(reg);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(mr.way, static_cast<uint32_t>(ROCEGW_MEMORY_REMAPPED));
  ASSERT_EQ(::pwrite(memory.get(), "hello", 5, 4096), 5);
  EXPECT_EQ(std::memcmp(On(0).mrs[mr.rkey].direct, "hello", 5), 0);
  EXPECT_EQ(::ftruncate(memory.get(), 0), -1);

  reg.region_offset = 0;
  client.Call<rocegw_mr_reply>(reg);
  EXPECT_EQ(client.error(), EINVAL) << "offset that does not fit the address";
  reg.address = reg.iova = create.address + create.length;
  reg.region_offset = create.length;
  client.Call<rocegw_mr_reply>(reg);
  EXPECT_EQ(client.error(), EINVAL) << "beyond the region";
  client.Object(ROCEGW_MSG_DESTROY_REGION, region.handle);
  EXPECT_EQ(client.error(), EBUSY);
  client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  client.Object(ROCEGW_MSG_DESTROY_REGION, region.handle);
  EXPECT_EQ(client.error(), 0);
  EXPECT_EQ(host.server->services().pools.gateway().used(session::Resource::kRegisteredBytes), 0u);
}

// Whole pages are shared, the rest of the registration is not; only the rest counts again.

TEST_F(Objects, Region_HoldsPartOfARegistration) {
  auto create = TestClient::Request<rocegw_create_region>(ROCEGW_MSG_CREATE_REGION);
  create.address = 0x7F0000001000;
  create.length = 8192;
  const auto region = client.Call<rocegw_object_reply>(create);
  ASSERT_EQ(client.error(), 0);
  const UniqueFd memory = std::move(client.received_fd);
  auto reg = TestClient::Request<rocegw_reg_mr>(ROCEGW_MSG_REG_MR);
  reg.pd = pd;
  reg.access = 7;
  reg.address = reg.iova = create.address - 100;
  reg.length = 100 + 8192 + 200;
  reg.region = region.handle;
  reg.region_offset = uint64_t{0} - 100;
  const auto mr = client.Call<rocegw_mr_reply>(reg);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(mr.way, static_cast<uint32_t>(ROCEGW_MEMORY_REMAPPED));
  ASSERT_EQ(::pwrite(memory.get(), "hello", 5, 0), 5);
  const verbs::RegionConfig& config = On(0).mrs[mr.rkey];
  EXPECT_EQ(config.direct_from, 100u);
  EXPECT_EQ(config.direct_length, 8192u);
  ASSERT_NE(config.DirectAt(100, 5), nullptr);
  EXPECT_EQ(std::memcmp(config.DirectAt(100, 5), "hello", 5), 0);
  EXPECT_EQ(config.DirectAt(99, 5), nullptr);
  EXPECT_EQ(host.server->services().pools.gateway().used(session::Resource::kRegisteredBytes),
            8192u + 300u);
  client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  client.Object(ROCEGW_MSG_DESTROY_REGION, region.handle);
  EXPECT_EQ(host.server->services().pools.gateway().used(session::Resource::kRegisteredBytes), 0u);
}

}  // namespace
}  // namespace rocegw::testing
