// SPDX-License-Identifier: Apache-2.0
// Registration of a GPU's memory against a scripted daemon, on a fake CUDA
// (tests/support/fake_cuda) whose memory faults when a processor touches it.
#include <dlfcn.h>
#include <sys/eventfd.h>

#include <cstring>

#include "tests/unit/client/verbs_fixture.h"

namespace rocegw::testing {
namespace {

constexpr size_t kAllocation = 1 << 16;
constexpr int kDeviceAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

class DeviceMemoryTest : public QpTest {
 protected:
  void SetUp() override {
    QpTest::SetUp();
    library_ = dlopen(ROCEGW_FAKE_CUDA, RTLD_NOW);
    ASSERT_NE(nullptr, library_) << dlerror();
    ASSERT_EQ(0, Cuda<int(unsigned)>("cuInit")(0));
    ASSERT_EQ(0, Cuda<int(void**, unsigned, int)>("cuCtxCreate_v2")(&cuda_context_, 0, 1));
    ASSERT_EQ(0, Cuda<int(uint64_t*, size_t)>("cuMemAlloc_v2")(&address_, kAllocation));
  }
  void TearDown() override {
    Cuda<int(uint64_t)>("cuMemFree_v2")(address_);
    Cuda<int(void*)>("cuCtxDestroy_v2")(cuda_context_);
    Cuda<int(void**)>("cuCtxPopCurrent_v2")(&cuda_context_);
    QpTest::TearDown();
  }
  template <typename Function>
  Function* Cuda(const char* name) {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  void* At(uint64_t offset) { return reinterpret_cast<void*>(address_ + offset); }
  ibv_mr* Register(uint64_t offset = 4096, size_t length = 8192, int access = kDeviceAccess) {
    errno = 0;
    return ibv_reg_mr(pd_, At(offset), length, access);
  }

  void* library_ = nullptr;
  void* cuda_context_ = nullptr;
  uint64_t address_ = 0;
};

TEST_F(DeviceMemoryTest, DaemonGetsTheAllocationsHandle_AndALocationInIt) {
  ibv_mr* const mr = Register();
  ASSERT_NE(nullptr, mr);
  EXPECT_EQ(At(4096), mr->addr);
  const auto import = daemon_->Last(ROCEGW_MSG_IMPORT_DEVICE).As<rocegw_import_device>();
  EXPECT_EQ(static_cast<uint32_t>(ROCEGW_DEVICE_CUDA), import.kind);
  EXPECT_EQ(address_, import.address);
  EXPECT_EQ(kAllocation, import.length) << "of the whole allocation";
  EXPECT_EQ(0x41, import.device[0]) << "the UUID of the second device";
  uint8_t handle[64];
  ASSERT_EQ(0, Cuda<int(uint8_t*, uint64_t)>("cuIpcGetMemHandle")(handle, address_));
  EXPECT_EQ(0, memcmp(handle, import.handle, sizeof handle));
  const auto asked = daemon_->Last(ROCEGW_MSG_REG_MR).As<rocegw_reg_mr>();
  EXPECT_NE(0u, asked.region);
  EXPECT_EQ(4096u, asked.region_offset);
  EXPECT_EQ(address_ + 4096, asked.address);
  EXPECT_EQ(0, ibv_dereg_mr(mr));
  EXPECT_EQ(asked.region,
            daemon_->Last(ROCEGW_MSG_DESTROY_REGION).As<rocegw_object_request>().handle);
}

TEST_F(DeviceMemoryTest, SmallSends_AreNotTakenByTheProcessor) {
  ibv_mr* const mr = Register();
  ASSERT_NE(nullptr, mr);
  ToState(IBV_QPS_INIT);
  ToState(IBV_QPS_RTR);
  ToState(IBV_QPS_RTS);
  ibv_sge sge = {address_ + 4100, 5, mr->lkey};
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp_, &wr, &bad)) << "without a fault";
  EXPECT_EQ(address_ + 4100, Fake().SendSges(0)[0].address) << "the gateway fetches the bytes";
  EXPECT_EQ(0, ibv_dereg_mr(mr));
}

TEST_F(DeviceMemoryTest, OtherMemoryIsAsEver) {
  EXPECT_EQ(0u, daemon_->Requests(ROCEGW_MSG_IMPORT_DEVICE).size())
      << "the fixture's region is ordinary memory";
}

TEST_F(DeviceMemoryTest, ImpossibleRequests_AreRefused) {
  EXPECT_EQ(nullptr, Register(kAllocation - 100, 101));
  EXPECT_EQ(EFAULT, errno) << "beyond the allocation";
  EXPECT_EQ(nullptr, Register(0, 0));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(nullptr, Register(0, 8, IBV_ACCESS_REMOTE_WRITE));
  EXPECT_EQ(EINVAL, errno) << "remote write needs local write";
  for (const int access : {int{IBV_ACCESS_ON_DEMAND}, int{IBV_ACCESS_MW_BIND}}) {
    EXPECT_EQ(nullptr, Register(0, 8, access | IBV_ACCESS_LOCAL_WRITE));
    EXPECT_EQ(EOPNOTSUPP, errno) << access;
  }
  EXPECT_EQ(0u, daemon_->Requests(ROCEGW_MSG_IMPORT_DEVICE).size());
  daemon_->Fail(ROCEGW_MSG_IMPORT_DEVICE, ENOSYS);
  EXPECT_EQ(nullptr, Register());
  EXPECT_EQ(EOPNOTSUPP, errno) << "an older daemon";
  daemon_->Fail(ROCEGW_MSG_IMPORT_DEVICE, ENODEV);
  EXPECT_EQ(nullptr, Register());
  EXPECT_EQ(ENODEV, errno);
  daemon_->Fail(ROCEGW_MSG_IMPORT_DEVICE, 0);
  daemon_->Fail(ROCEGW_MSG_REG_MR, ENOMEM);
  EXPECT_EQ(nullptr, Register());
  EXPECT_EQ(ENOMEM, errno);
  EXPECT_EQ(1u, daemon_->Requests(ROCEGW_MSG_DESTROY_REGION).size()) << "nothing stays";
}

TEST_F(DeviceMemoryTest, ManagedMemory_IsRefused) {
  uint64_t managed = 0;
  ASSERT_EQ(0, Cuda<int(uint64_t*, size_t, unsigned)>("cuMemAllocManaged")(&managed, 8192, 1));
  errno = 0;
  EXPECT_EQ(nullptr, ibv_reg_mr(pd_, reinterpret_cast<void*>(managed), 8192, kDeviceAccess));
  EXPECT_EQ(EOPNOTSUPP, errno);
  EXPECT_EQ(0u, daemon_->Requests(ROCEGW_MSG_IMPORT_DEVICE).size());
}

// Memory of cuMemCreate, for `handle_types` of which 1 means a descriptor.
uint64_t CreateShared(void* library, int handle_types) {
  const auto call = [&](const char* name) { return dlsym(library, name); };
  struct {
    int type = 1, handle_types, location_type = 1, location = 0;
  } properties;
  properties.handle_types = handle_types;
  struct {
    int location_type = 1, location = 0, rights = 3;
  } access;
  constexpr size_t kLength = 2 << 20;
  uint64_t handle = 0;
  uint64_t address = 0;
  using Create = int(uint64_t*, size_t, const void*, unsigned long long);
  using Reserve = int(uint64_t*, size_t, size_t, uint64_t, unsigned long long);
  using Map = int(uint64_t, size_t, size_t, uint64_t, unsigned long long);
  using Set = int(uint64_t, size_t, const void*, size_t);
  EXPECT_EQ(0, reinterpret_cast<Create*>(call("cuMemCreate"))(&handle, kLength, &properties, 0));
  EXPECT_EQ(0, reinterpret_cast<Reserve*>(call("cuMemAddressReserve"))(&address, kLength, 0, 0, 0));
  EXPECT_EQ(0, reinterpret_cast<Map*>(call("cuMemMap"))(address, kLength, 0, handle, 0));
  EXPECT_EQ(0, reinterpret_cast<Set*>(call("cuMemSetAccess"))(address, kLength, &access, 1));
  return address;
}

TEST_F(DeviceMemoryTest, MemoryOfCuMemCreate_GoesByDescriptor_WhichIsClosed) {
  const uint64_t shared = CreateShared(library_, 1);
  const int lowest = eventfd(0, EFD_CLOEXEC);
  ASSERT_EQ(0, close(lowest));
  ibv_mr* const mr = ibv_reg_mr(pd_, reinterpret_cast<void*>(shared + 64), 8192, kDeviceAccess);
  ASSERT_NE(nullptr, mr) << strerror(errno);
  const auto import = daemon_->Last(ROCEGW_MSG_IMPORT_DEVICE).As<rocegw_import_device>();
  EXPECT_EQ(static_cast<uint32_t>(ROCEGW_DEVICE_CUDA_DESCRIPTOR), import.kind);
  EXPECT_EQ(shared, import.address);
  EXPECT_EQ(size_t{2} << 20, import.length);
  const int again = eventfd(0, EFD_CLOEXEC);
  EXPECT_EQ(lowest, again) << "the library keeps no descriptor";
  close(again);
  EXPECT_EQ(0, ibv_dereg_mr(mr));
}

TEST_F(DeviceMemoryTest, MemoryOfCuMemCreate_ThatIsNotExportable_IsRefused) {
  const uint64_t shared = CreateShared(library_, 0);
  errno = 0;
  EXPECT_EQ(nullptr, ibv_reg_mr(pd_, reinterpret_cast<void*>(shared), 8192, kDeviceAccess));
  EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_F(DeviceMemoryTest, DmaBufOfAGpu_IsRegisteredByItsAddress) {
  // An exported buffer of a GPU has no mapping for processors. Event files have none, either.
  const int unmappable = eventfd(0, EFD_CLOEXEC);
  ibv_mr* const mr = ibv_reg_dmabuf_mr(pd_, 0, 4096, address_, unmappable, kDeviceAccess);
  ASSERT_NE(nullptr, mr) << strerror(errno);
  EXPECT_EQ(address_, daemon_->Last(ROCEGW_MSG_REG_MR).As<rocegw_reg_mr>().iova);
  EXPECT_EQ(0u, daemon_->Requests(ROCEGW_MSG_IMPORT_REGION).size());
  EXPECT_EQ(0, ibv_dereg_mr(mr));
  close(unmappable);
}

}  // namespace
}  // namespace rocegw::testing
