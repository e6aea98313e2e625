// SPDX-License-Identifier: Apache-2.0
// Registered memory of GPUs, on a fake CUDA (tests/support/fake_cuda): keys, charges, access by a
// copier, and refusals.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "gateway/abi/greeting.h"
#include "gateway/memory/copier.h"
#include "gateway/session/objects/session_costs.h"
#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/unit/session/objects/objects_fixture.h"

namespace rocegw::testing {
namespace {

constexpr uint64_t kAllocation = 1 << 20;
constexpr uint32_t kAllRights = verbs::kAccessLocalWrite | verbs::kAccessRemoteWrite |
                                verbs::kAccessRemoteRead | verbs::kAccessRemoteAtomic;

class DeviceRegions : public ::testing::Test {
 protected:
  explicit DeviceRegions(const session::Options& options = FakeCuda())
      : host(2, options), client(host) {}
  static session::Options FakeCuda() {
    session::Options options;
    options.drivers = {ROCEGW_FAKE_CUDA, ROCEGW_FAKE_CUDA};
    return options;
  }
  void SetUp() override {
    library = ::dlopen(ROCEGW_FAKE_CUDA, RTLD_NOW);
    ASSERT_NE(library, nullptr) << ::dlerror();
    void* context = nullptr;
    ASSERT_EQ(Call<int(unsigned)>("cuInit")(0), 0);
    ASSERT_EQ(Call<int(void**, unsigned, int)>("cuCtxCreate_v2")(&context, 0, 0), 0);
    ASSERT_EQ(Call<int(uint64_t*, size_t)>("cuMemAlloc_v2")(&address, kAllocation), 0);
    Call<void(int)>("FakeCudaLose")(0);
    Call<void(int)>("FakeCudaWaits")(3);
    // A device that never answered keeps a context of an earlier test.
    Call<void()>("FakeCudaEndOthers")();
    pinned_before = Counts().pinned;
    ASSERT_TRUE(client.Hello());
    pd = client.AllocPd(client.OpenContext());
    client.AnswersTakeTime();  // another thread opens the allocation
  }
  void TearDown() override {
    EXPECT_EQ(host.BrokenRules(), std::vector<std::string>());
    Call<void(int)>("FakeCudaWaits")(0);
    Call<int(uint64_t)>("cuMemFree_v2")(address);
  }
  template <typename Function>
  Function* Call(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(library, name));
  }
  FakeCudaCounts Counts() { return Call<FakeCudaCounts()>("FakeCudaCount")(); }
  // Waits until call queues have ended what sessions left.
  void AwaitCalls() {
    while (session::ClientCallQueue::HeldByAll() != 0) host.Settle();
    host.Settle();
  }

  rocegw_import_device Place() {
    auto import = TestClient::Request<rocegw_import_device>(ROCEGW_MSG_IMPORT_DEVICE);
    import.kind = ROCEGW_DEVICE_CUDA;
    import.address = address;
    import.length = kAllocation;
    std::memset(import.device, 0x40, sizeof import.device);
    EXPECT_EQ(Call<int(uint8_t*, uint64_t)>("cuIpcGetMemHandle")(import.handle, address), 0);
    return import;
  }
  uint32_t Import() { return client.Call<rocegw_object_reply>(Place()).handle; }
  rocegw_mr_reply Register(uint32_t region, uint64_t offset, uint64_t length,
                           uint32_t access = kAllRights) {
    auto reg = TestClient::Request<rocegw_reg_mr>(ROCEGW_MSG_REG_MR);
    reg.pd = pd;
    reg.access = access;
    reg.address = reg.iova = address + offset;
    reg.length = length;
    reg.region = region;
    reg.region_offset = offset;
    return client.Call<rocegw_mr_reply>(reg);
  }
  // Writes six bytes by the session's copier.
  std::unique_ptr<memory::Batch> Write() {
    auto batch = std::make_unique<memory::Batch>();
    batch->staging.assign(6, 'x');
    memory::MemoryOp op{.kind = memory::OpKind::kWrite, .length = 6, .address = address + 100};
    op.buffer = batch->staging.data();
    batch->ops.push_back(op);
    EXPECT_TRUE(On(0).link.copier->Submit(0, batch));
    while ((batch = On(0).link.copier->Collect(0)) == nullptr) host.Settle();
    return batch;
  }
  bool WriteFails() { return !Write()->failed.empty(); }
  uint64_t Used(session::Resource what) {
    return host.server->services().pools.gateway().used(what);
  }
  FakeWorker::Session& On(size_t worker) { return host.workers[worker]->sessions.begin()->second; }

  SessionHost host;
  TestClient client;
  void* library = nullptr;
  uint64_t address = 0;
  uint32_t pd = 0;
  int pinned_before = 0;
};

TEST_F(DeviceRegions, Key_IsOfNoMappedMemory_AndGrantsNoAtomics) {
  EXPECT_EQ(On(0).link.copier, nullptr) << "a trusted program, until now";
  const uint32_t region = Import();
  ASSERT_EQ(client.error(), 0);
  const auto mr = Register(region, 4096, 8192);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(mr.way, static_cast<uint32_t>(ROCEGW_MEMORY_DEVICE));
  for (size_t w = 0; w < 2; ++w) {
    const verbs::RegionConfig& config = On(w).mrs[mr.rkey];
    EXPECT_EQ(config.direct_length, 0u);
    EXPECT_EQ(config.address, address + 4096);
    EXPECT_EQ(config.access, kAllRights & ~uint32_t{verbs::kAccessRemoteAtomic});
    EXPECT_NE(On(w).link.copier, nullptr) << "no worker waits for a device";
  }
  std::vector<session::MrRow> rows;
  host.server->Snapshot({.mrs = true},
                        [&](session::StateSnapshot snapshot) { rows = std::move(snapshot.mrs); });
  host.Settle();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].way, ROCEGW_MEMORY_DEVICE);
  EXPECT_EQ(rows[0].reason, "CUDA device GPU-40404040-4040-4040-4040-404040404040");
}

TEST_F(DeviceRegions, ProgramThatHasLoadedCuda_HasACopierFromTheStart) {
  TestClient other(host);
  auto hello = TestClient::Request<rocegw_hello>(ROCEGW_MSG_HELLO);
  hello.magic = ROCEGW_ABI_MAGIC;
  hello.major = ROCEGW_ABI_MAJOR;
  hello.minor = ROCEGW_ABI_MINOR;
  hello.flags = ROCEGW_HELLO_DEVICES;
  other.Call<rocegw_hello_reply>(hello);
  ASSERT_EQ(other.error(), 0);
  ASSERT_NE(other.OpenContext(), 0u);
  EXPECT_NE(host.workers[0]->sessions.rbegin()->second.link.copier, nullptr);
}

TEST_F(DeviceRegions, WithQueuePairsAndNoCopier_IsTooLate) {
  const uint32_t context = client.OpenContext();
  const uint32_t own_pd = client.AllocPd(context);
  client.CreateQp(own_pd, client.CreateCq(context).handle);
  ASSERT_EQ(client.error(), 0);
  Import();
  EXPECT_EQ(client.error(), EOPNOTSUPP);
  AwaitCalls();
}

TEST_F(DeviceRegions, Copier_ReachesTheAllocation) {
  Register(Import(), 0, kAllocation);
  ASSERT_EQ(client.error(), 0);
  const auto batch = Write();
  EXPECT_TRUE(batch->failed.empty());
  EXPECT_EQ(batch->counts.device_bytes, 6u);
  char read[8] = {};
  ASSERT_EQ(Call<int(void*, uint64_t, size_t)>("cuMemcpyDtoH_v2")(read, address + 99, 7), 0);
  EXPECT_EQ(std::string(read + 1), "xxxxxx");
  EXPECT_EQ(read[0], 0);
}

TEST_F(DeviceRegions, RegistrationsLieInTheAllocation) {
  const uint32_t region = Import();
  Register(region, kAllocation - 10, 11);
  EXPECT_EQ(client.error(), EINVAL);
  Register(region, 0, 100, kAllRights | verbs::kAccessMwBind);
  EXPECT_EQ(client.error(), EINVAL) << "windows could grant atomics";
  auto reg = TestClient::Request<rocegw_reg_mr>(ROCEGW_MSG_REG_MR);
  reg.pd = pd;
  reg.access = kAllRights;
  reg.address = reg.iova = address + 8;
  reg.length = 8;
  reg.region = region;
  client.Call<rocegw_mr_reply>(reg);
  EXPECT_EQ(client.error(), EINVAL) << "an offset that does not fit the address";
  EXPECT_EQ(Used(session::Resource::kMrs), 0u);
}

TEST_F(DeviceRegions, WrongPlaces_AreRefused_AndNothingStaysChargedOrOpen) {
  const int opened = Counts().opened;
  const uint64_t heap = Used(session::Resource::kHeapBytes);
  auto place = Place();
  place.length = kAllocation + 1;
  client.Call<rocegw_object_reply>(place);
  EXPECT_EQ(client.error(), EINVAL) << "longer than the allocation";
  place = Place();
  place.handle[0] ^= 0xFF;
  client.Call<rocegw_object_reply>(place);
  EXPECT_EQ(client.error(), EINVAL) << "no handle";
  place = Place();
  place.device[3] = 9;
  client.Call<rocegw_object_reply>(place);
  EXPECT_EQ(client.error(), ENODEV);
  place = Place();
  place.address = UINT64_MAX - 10;
  client.Call<rocegw_object_reply>(place);
  EXPECT_EQ(client.error(), EINVAL) << "beyond the address space";
  for (const uint32_t kind : {0u, 5u, 7u}) {
    place = Place();
    place.kind = kind;
    client.Call<rocegw_object_reply>(place);
    EXPECT_EQ(client.error(), EOPNOTSUPP) << kind;
  }
  AwaitCalls();
  EXPECT_EQ(Counts().opened, opened);
  EXPECT_EQ(Used(session::Resource::kHeapBytes), heap);
}

TEST_F(DeviceRegions, AreNotOfferedToASuccessor) {
  client.Call<rocegw_object_reply>(Place());
  ASSERT_EQ(client.error(), 0);
  OfferedFds fds;
  host.server->attach().OfferSessions(fds);
  EXPECT_FALSE(fds.empty());
  for (const OfferedFd& one : fds) EXPECT_NE(one.kind, FdKind::kRegion);
  EXPECT_NE(host.server->attach().NotHandedOver(), "");
}

TEST_F(DeviceRegions, StagingMemoryAndBytesAreCharged_AndReturn) {
  const int opened = Counts().opened;
  const uint64_t heap = Used(session::Resource::kHeapBytes);
  const uint32_t region = Import();
  EXPECT_GE(Used(session::Resource::kHeapBytes) - heap, device_memory::kStagingBytes);
  const auto mr = Register(region, 0, 1000);
  EXPECT_EQ(Used(session::Resource::kRegisteredBytes), 1000u);
  client.Object(ROCEGW_MSG_DESTROY_REGION, region);
  EXPECT_EQ(client.error(), EBUSY);
  client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  client.Object(ROCEGW_MSG_DESTROY_REGION, region);
  EXPECT_EQ(client.error(), 0);
  AwaitCalls();
  EXPECT_EQ(Counts().opened, opened);
  EXPECT_EQ(Used(session::Resource::kRegisteredBytes), 0u);
}

TEST_F(DeviceRegions, ContextOfADevice_IsChargedOnce_AndReturnsWithItsLastRegion) {
  const uint64_t heap = Used(session::Resource::kHeapBytes);
  const uint64_t descriptors = Used(session::Resource::kDescriptors);
  const uint32_t first = Import();
  const uint64_t of_first = Used(session::Resource::kHeapBytes) - heap;
  EXPECT_GE(of_first, session::kHeapOfDeviceContext + device_memory::kStagingBytes);
  EXPECT_EQ(Used(session::Resource::kDescriptors) - descriptors, session::kDescriptorsOfDevice);
  const uint32_t second = Import();
  AwaitCalls();
  EXPECT_LT(Used(session::Resource::kHeapBytes) - heap, of_first + device_memory::kStagingBytes);
  EXPECT_EQ(Used(session::Resource::kDescriptors) - descriptors, session::kDescriptorsOfDevice);
  client.Object(ROCEGW_MSG_DESTROY_REGION, first);
  AwaitCalls();
  EXPECT_EQ(Used(session::Resource::kDescriptors) - descriptors, session::kDescriptorsOfDevice);
  client.Object(ROCEGW_MSG_DESTROY_REGION, second);
  AwaitCalls();
  EXPECT_EQ(Used(session::Resource::kDescriptors), descriptors);
  EXPECT_LT(Used(session::Resource::kHeapBytes) - heap, session::kHeapOfDeviceContext)
      << "the copier's heap stays";
}

TEST_F(DeviceRegions, DeviceThatIsLost_StaysWithItsProgram_AndTheNextRegistrationWorks) {
  const uint32_t region = Import();
  Register(region, 0, kAllocation);
  Call<void(int)>("FakeCudaLose")(1);
  EXPECT_TRUE(WriteFails());
  Call<void(int)>("FakeCudaLose")(0);
  const uint32_t again = Import();
  ASSERT_EQ(client.error(), 0);
  Register(again, 0, kAllocation);
  EXPECT_FALSE(WriteFails());
  EXPECT_EQ(Counts().pinned, pinned_before + 1) << "the lost context gave its memory back";
}

// The pool of a program pays for what a GPU may use for good.
TEST_F(DeviceRegions, DeviceThatNeverAnswers_KeepsItsChargesBeyondTheProgram) {
  Register(Import(), 0, kAllocation);
  Call<void(int)>("FakeCudaWaits")(-1);
  EXPECT_TRUE(WriteFails());
  host.blocked_calls = 1;  // the session stays, for its charges
  client.Disconnect();
  host.Settle();
  AwaitCalls();
  while (memory::Copier::LiveThreads() != 0) host.Settle();
  AwaitCalls();
  EXPECT_EQ(Counts().pinned, pinned_before + 1);
  EXPECT_GE(Used(session::Resource::kHeapBytes),
            session::kHeapOfDeviceContext + device_memory::kStagingBytes);
  EXPECT_GE(Used(session::Resource::kDescriptors), session::kDescriptorsOfDevice);
}

TEST_F(DeviceRegions, EndOfTheProgram_ClosesEverything) {
  const FakeCudaCounts before = Counts();
  Register(Import(), 0, kAllocation);
  Register(Import(), 0, kAllocation);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(Counts().opened, before.opened + 2);
  client.Disconnect();
  host.Settle();
  AwaitCalls();
  while (memory::Copier::LiveThreads() != 0) host.Settle();
  host.Settle();
  AwaitCalls();
  EXPECT_EQ(Counts().opened, before.opened);
  EXPECT_EQ(Counts().contexts, before.contexts);
  EXPECT_EQ(Used(session::Resource::kHeapBytes), 0u);
  EXPECT_EQ(Used(session::Resource::kDescriptors), 0u);
}

class UntrustedPool : public DeviceRegions {
 protected:
  UntrustedPool() : DeviceRegions(Untrusted()) {}
  static session::Options Untrusted() {
    session::Options options = FakeCuda();
    options.trusted = false;
    return options;
  }
};

TEST_F(UntrustedPool, HandlesAreRefused_SinceTheyCanBeAnyones) {
  const int opened = Counts().opened;
  Import();
  EXPECT_EQ(client.error(), EPERM);
  EXPECT_EQ(Counts().opened, opened);
}

// A descriptor is of the program that passes it.
TEST_F(UntrustedPool, DescriptorsAreTaken_AndOtherFilesAreNot) {
  constexpr uint64_t kShared = 2 << 20;
  struct {
    int type = 1, handle_types = 1, location_type = 1, location = 0;
  } properties;
  uint64_t handle = 0;
  int exported = -1;
  ASSERT_EQ((Call<int(uint64_t*, size_t, void*, unsigned long long)>("cuMemCreate")(
                &handle, kShared, &properties, 0)),
            0);
  ASSERT_EQ((Call<int(void*, uint64_t, int, unsigned long long)>("cuMemExportToShareableHandle")(
                &exported, handle, 1, 0)),
            0);
  const UniqueFd shared(exported);
  const FakeCudaCounts before = Counts();
  const uint64_t heap = Used(session::Resource::kHeapBytes);
  const uint64_t descriptors = Used(session::Resource::kDescriptors);
  auto place = Place();
  place.kind = ROCEGW_DEVICE_CUDA_DESCRIPTOR;
  place.length = kShared;
  const UniqueFd zero(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  client.Call<rocegw_object_reply>(place, zero.get());
  EXPECT_EQ(client.error(), EINVAL) << "another character device";
  const UniqueFd memory(::memfd_create("memory", MFD_CLOEXEC));
  client.Call<rocegw_object_reply>(place, memory.get());
  EXPECT_EQ(client.error(), EINVAL) << "memory of no GPU";
  client.Call<rocegw_object_reply>(place);
  EXPECT_EQ(client.error(), EBADF) << "no descriptor";
  place.length = 2 * kShared;
  client.Call<rocegw_object_reply>(place, shared.get());
  EXPECT_EQ(client.error(), EINVAL) << "longer than the allocation";
  AwaitCalls();
  EXPECT_EQ(Used(session::Resource::kHeapBytes), heap);
  EXPECT_EQ(Used(session::Resource::kDescriptors), descriptors);
  EXPECT_EQ(Counts().contexts, before.contexts);
  place.length = kShared;
  const uint32_t region = client.Call<rocegw_object_reply>(place, shared.get()).handle;
  ASSERT_EQ(client.error(), 0);
  Register(region, 0, kAllocation);
  EXPECT_EQ(client.error(), 0);
  EXPECT_FALSE(WriteFails());
  char written[6] = {};
  ASSERT_EQ(::pread(shared.get(), written, 6, 100), 6);
  EXPECT_EQ(std::string(written, 6), "xxxxxx");
}

class NoCuda : public DeviceRegions {
 protected:
  NoCuda() : DeviceRegions(Nothing()) {}
  static session::Options Nothing() {
    session::Options options;
    options.drivers.cuda = "libcuda_of_nobody.so.1";
    return options;
  }
};

TEST_F(NoCuda, HostWithoutTheLibrary_SaysSo) {
  Import();
  EXPECT_EQ(client.error(), ENODEV);
  EXPECT_TRUE(host.Logged("libcuda_of_nobody.so.1"));
}

}  // namespace
}  // namespace rocegw::testing
