// SPDX-License-Identifier: Apache-2.0
// Copies of device memory, on fake drivers (tests/support/fake_cuda): order, batches, faults, and
// what a lost device does.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "gateway/device_memory/device_space.h"
#include "gateway/device_memory/open_devices.h"
#include "tests/support/fake_cuda/fake_cuda.h"

namespace rocegw::device_memory {
namespace {

using memory::MemoryOp;
using memory::OpKind;

constexpr uint64_t kLength = 3 << 20;

// Ordinary memory of the client: remembers what it was asked for.
class HostSpace final : public memory::MemorySpace {
 public:
  size_t Execute(std::span<MemoryOp> ops, memory::MemoryCounts&) override {
    for (const MemoryOp& op : ops) asked.push_back(op.address);
    return ops.size();
  }
  bool Gone() const override { return gone; }
  std::vector<uint64_t> asked;
  bool gone = false;
};

// Parameter: whose driver it is.
class DeviceMemory : public ::testing::TestWithParam<DriverKind> {
 protected:
  static const char* Library() {
    return GetParam() == DriverKind::kCuda ? ROCEGW_FAKE_CUDA : ROCEGW_FAKE_HIP;
  }
  void SetUp() override {
    library_ = ::dlopen(Library(), RTLD_NOW);
    ASSERT_NE(library_, nullptr) << ::dlerror();
    auto driver = Driver::Load(GetParam(), Library());
    ASSERT_TRUE(driver.ok()) << driver.status().text();
    driver_ = *driver;
    Call<void(int)>("FakeCudaLose")(0);
    Call<void(int)>("FakeCudaWaits")(3);
    Call<void(int, int)>("FakeCudaFail")(0, -1);
    // The client: a context with an allocation.
    ASSERT_EQ(driver_->create_context(&context_, 0, 0), kCuSuccess);
    address_ = Allocate(kLength);
    host_ = std::make_shared<HostSpace>();
    space_ = std::make_unique<DeviceSpace>(host_);
  }
  void TearDown() override {
    Call<void(int)>("FakeCudaLose")(0);
    Call<void(int)>("FakeCudaWaits")(0);
    space_.reset();
    buffers_.clear();
    Call<void()>("FakeCudaEndOthers")();
    for (const CuPointer one : allocated_)
      Call<int(CuPointer)>(Name("cuMemFree_v2", "hipFree"))(one);
    driver_->destroy_context(context_);
    CuContext popped = nullptr;
    driver_->pop_context(&popped);
  }
  template <typename Function>
  Function* Call(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(library_, name));
  }
  static const char* Name(const char* cuda, const char* hip) {
    return GetParam() == DriverKind::kCuda ? cuda : hip;
  }
  FakeCudaCounts Counts() { return Call<FakeCudaCounts()>("FakeCudaCount")(); }
  CuPointer Allocate(size_t length) {
    CuPointer address = 0;
    EXPECT_EQ(Call<int(CuPointer*, size_t)>(Name("cuMemAlloc_v2", "hipMalloc"))(&address, length),
              kCuSuccess);
    allocated_.push_back(address);
    return address;
  }
  static CuUuid Uuid(uint8_t device = 0) {
    CuUuid uuid;
    std::memset(&uuid, 0x40 + device, sizeof uuid);
    return uuid;
  }
  DeviceBuffer::Place PlaceOf(CuPointer address, uint64_t length) {
    DeviceBuffer::Place place{.address = address, .length = length};
    EXPECT_EQ(Call<int(CuIpcHandle*, CuPointer)>(Name("cuIpcGetMemHandle", "hipIpcGetMemHandle"))(
                  &place.handle, address),
              kCuSuccess);
    return place;
  }
  static OpenDevices::Wish WishFor(const CuUuid& device, const DeviceBuffer::Place& place) {
    OpenDevices::Wish wish{.kind = GetParam(), .device = device};
    wish.place = place;
    return wish;
  }
  // A wish whose costs set `released`.
  OpenDevices::Wish Charged(const CuUuid& device, const DeviceBuffer::Place& place,
                            bool& released) {
    OpenDevices::Wish wish = WishFor(device, place);
    wish.costs = std::make_shared<EngineCosts>([&released] { released = true; });
    return wish;
  }
  std::shared_ptr<DeviceEngine> Engine(Duration patience = Seconds(5)) {
    auto engine = DeviceEngine::Open(driver_, {.device = Uuid(), .patience = patience});
    EXPECT_TRUE(engine.ok()) << engine.status().text();
    return *engine;
  }
  void Register(const std::shared_ptr<DeviceEngine>& engine, CuPointer address, uint64_t length) {
    auto buffer = DeviceBuffer::Open(engine, PlaceOf(address, length));
    ASSERT_TRUE(buffer.ok()) << buffer.status().text();
    space_->Add(*buffer);
    buffers_.push_back(*buffer);
  }
  static MemoryOp Op(OpKind kind, uint64_t address, std::vector<uint8_t>& buffer) {
    MemoryOp op{.kind = kind, .length = static_cast<uint32_t>(buffer.size()), .address = address};
    op.publish = kind == OpKind::kWrite;
    op.buffer = buffer.data();
    return op;
  }
  // The client's own view of its memory.
  std::vector<uint8_t> Read(CuPointer address, size_t length) {
    std::vector<uint8_t> bytes(length);
    EXPECT_EQ(Call<int(void*, CuPointer, size_t)>(Name("cuMemcpyDtoH_v2", "hipMemcpyDtoH"))(
                  bytes.data(), address, length),
              kCuSuccess);
    return bytes;
  }
  size_t Execute(std::vector<MemoryOp>& ops) { return space_->Execute(ops, counts_); }

  void* library_ = nullptr;
  std::shared_ptr<const Driver> driver_;
  CuContext context_ = nullptr;
  CuPointer address_ = 0;
  std::vector<CuPointer> allocated_;
  std::vector<std::shared_ptr<DeviceBuffer>> buffers_;
  std::shared_ptr<HostSpace> host_;
  std::unique_ptr<DeviceSpace> space_;
  memory::MemoryCounts counts_;
};

std::vector<uint8_t> Pattern(size_t length, uint8_t seed) {
  std::vector<uint8_t> bytes(length);
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<uint8_t>(seed + i * 7 + i / 256);
  return bytes;
}

TEST_P(DeviceMemory, Library_ThatIsNotThere_IsNoDevice) {
  EXPECT_EQ(Driver::Load(GetParam(), "lib_of_nobody.so.1").status().error(), ENODEV);
  EXPECT_EQ(Driver::Load(GetParam(), "libm.so.6").status().error(), ENODEV) << "another library";
  EXPECT_TRUE(Driver::Load(GetParam(), std::string("lib_of_nobody.so.1,") + Library()).ok())
      << "the second name of the list";
  EXPECT_EQ(DeviceEngine::Open(driver_, {.device = Uuid(9)}).status().error(), ENODEV)
      << "another device";
}

TEST_P(DeviceMemory, Handles_ReachTheirAllocationAlone) {
  const int opened = Counts().opened;
  const auto engine = Engine();
  EXPECT_EQ(DeviceBuffer::Open(engine, PlaceOf(address_, kLength + 1)).status().error(), EINVAL)
      << "longer than the allocation";
  DeviceBuffer::Place invented{.address = address_, .length = kLength};
  EXPECT_EQ(DeviceBuffer::Open(engine, invented).status().error(), EINVAL);
  EXPECT_EQ(Counts().opened, opened) << "nothing stays open";
}

TEST_P(DeviceMemory, WritesAndReads_InOrder_OneEventForABatch) {
  Register(Engine(), address_, kLength);
  std::vector<uint8_t> first = Pattern(10'000, 1);
  std::vector<uint8_t> second = Pattern(100, 90);
  std::vector<uint8_t> between(200);
  std::vector<uint8_t> after(200);
  const int events = Counts().events;
  std::vector<MemoryOp> ops = {
      Op(OpKind::kWrite, address_ + 5, first), Op(OpKind::kRead, address_ + 4'005, between),
      Op(OpKind::kWrite, address_ + 4'055, second), Op(OpKind::kRead, address_ + 4'005, after)};
  EXPECT_EQ(Execute(ops), 4u);
  EXPECT_EQ(Counts().events - events, 1);
  EXPECT_TRUE(std::equal(between.begin(), between.end(), first.begin() + 4'000))
      << "a read sees the writes before it, and no later one";
  std::vector<uint8_t> wanted(first.begin() + 4'000, first.begin() + 4'200);
  std::copy(second.begin(), second.end(), wanted.begin() + 50);
  EXPECT_EQ(after, wanted);
  EXPECT_EQ(Read(address_ + 4'005, 200), wanted);
  EXPECT_EQ(counts_.device_operations, 4u);
  EXPECT_EQ(counts_.device_bytes, 10'500u);
}

TEST_P(DeviceMemory, OperationsLongerThanStagingMemory) {
  Register(Engine(), address_, kLength);
  std::vector<uint8_t> long_write = Pattern(2 * kStagingBytes + 12'345, 3);
  std::vector<uint8_t> long_read(long_write.size());
  std::vector<MemoryOp> ops = {Op(OpKind::kWrite, address_ + 1, long_write),
                               Op(OpKind::kRead, address_ + 1, long_read)};
  EXPECT_EQ(Execute(ops), 2u);
  EXPECT_EQ(long_read, long_write);
}

TEST_P(DeviceMemory, OtherAddresses_AreOrdinaryMemory_InOrder) {
  Register(Engine(), address_, kLength);
  std::vector<uint8_t> bytes(64);
  std::vector<MemoryOp> ops = {
      Op(OpKind::kRead, 0x1000, bytes), Op(OpKind::kWrite, address_, bytes),
      Op(OpKind::kRead, address_ - 1, bytes), Op(OpKind::kRead, address_ + kLength, bytes)};
  EXPECT_EQ(Execute(ops), 4u);
  EXPECT_EQ(host_->asked, (std::vector<uint64_t>{0x1000, address_ - 1, address_ + kLength}));
}

TEST_P(DeviceMemory, AtomicsAndRangesBeyondTheBuffer_Fault_AndReachNothing) {
  Register(Engine(), address_, kLength);
  std::vector<uint8_t> word = Pattern(8, 1);
  std::vector<MemoryOp> ops = {Op(OpKind::kWrite, address_, word),
                               Op(OpKind::kFetchAdd, address_, word)};
  EXPECT_EQ(Execute(ops), 1u);
  std::vector<MemoryOp> beyond = {Op(OpKind::kWrite, address_ + kLength - 4, word)};
  EXPECT_EQ(Execute(beyond), 0u);
  EXPECT_TRUE(host_->asked.empty());
}

TEST_P(DeviceMemory, ARefusedCopy_FaultsAlone) {
  Register(Engine(), address_, kLength);
  std::vector<uint8_t> bytes = Pattern(8, 1);
  std::vector<uint8_t> read(8);
  Call<void(int, int)>("FakeCudaFail")(1, 1);
  std::vector<MemoryOp> ops = {Op(OpKind::kWrite, address_, bytes),
                               Op(OpKind::kWrite, address_ + 8, bytes),
                               Op(OpKind::kRead, address_, read)};
  EXPECT_EQ(Execute(ops), 1u) << "the first write is done";
  std::vector<MemoryOp> later = {ops[2]};
  EXPECT_EQ(Execute(later), 1u) << "the device goes on";
  EXPECT_EQ(read, bytes);
}

TEST_P(DeviceMemory, AFreedAllocation_Faults) {
  const CuPointer other = Allocate(4096);
  Register(Engine(), other, 4096);
  Call<int(CuPointer)>(Name("cuMemFree_v2", "hipFree"))(other);
  allocated_.pop_back();
  std::vector<uint8_t> bytes(8);
  std::vector<MemoryOp> ops = {Op(OpKind::kRead, other, bytes)};
  EXPECT_EQ(Execute(ops), 0u);
}

TEST_P(DeviceMemory, ALostDevice_FaultsEverything_AndTheEndDoesNotWaitForIt) {
  Register(Engine(), address_, kLength);
  std::vector<uint8_t> bytes(8);
  std::vector<MemoryOp> ops = {Op(OpKind::kRead, address_, bytes)};
  Call<void(int)>("FakeCudaLose")(1);
  EXPECT_EQ(Execute(ops), 0u);
  Call<void(int)>("FakeCudaLose")(0);
  EXPECT_EQ(Execute(ops), 0u) << "the context stays lost";
  std::vector<MemoryOp> host = {Op(OpKind::kRead, 0x1000, bytes)};
  EXPECT_EQ(Execute(host), 1u) << "other memory is reached";
}

TEST_P(DeviceMemory, CopiesThatNeverEnd_AreGivenUp) {
  Register(Engine(Milliseconds(20)), address_, kLength);
  Call<void(int)>("FakeCudaWaits")(-1);
  std::vector<uint8_t> bytes(8);
  std::vector<MemoryOp> ops = {Op(OpKind::kWrite, address_, bytes)};
  EXPECT_EQ(Execute(ops), 0u);
}

TEST_P(DeviceMemory, BuffersOfADeviceShareItsContext_AndTheEndOfTheLastFreesIt) {
  const int contexts = Counts().contexts;
  const int opened = Counts().opened;  // including allocations of lost devices
  const CuPointer other = Allocate(4096);
  OpenDevices devices({ROCEGW_FAKE_CUDA, ROCEGW_FAKE_HIP});
  auto first = devices.Open(WishFor(Uuid(), PlaceOf(address_, kLength)));
  auto second = devices.Open(WishFor(Uuid(), PlaceOf(other, 4096)));
  auto elsewhere = devices.Open(WishFor(Uuid(1), PlaceOf(other, 4096)));
  ASSERT_TRUE(first.ok() && second.ok() && elsewhere.ok());
  EXPECT_EQ(Counts().contexts, contexts + 2) << "one a device";
  EXPECT_EQ(Counts().opened, opened + 3);
  first->reset();
  EXPECT_EQ(Counts().contexts, contexts + 2);
  second->reset();
  elsewhere->reset();
  EXPECT_EQ(Counts().contexts, contexts);
  EXPECT_EQ(Counts().opened, opened);
  OpenDevices none({"lib_of_nobody.so.1", "lib_of_nobody.so.2"});
  EXPECT_EQ(none.Open(WishFor(Uuid(), {})).status().error(), ENODEV);
}

TEST_P(DeviceMemory, CostsOfAnEngine_ReturnWhenItEnds_AndAtOnceIfTheOpeningMadeNone) {
  const CuPointer other = Allocate(4096);
  OpenDevices devices({ROCEGW_FAKE_CUDA, ROCEGW_FAKE_HIP});
  bool first_released = false;
  bool second_released = false;
  auto first = devices.Open(Charged(Uuid(), PlaceOf(address_, kLength), first_released));
  auto second = devices.Open(Charged(Uuid(), PlaceOf(other, 4096), second_released));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(second_released);
  first->reset();
  EXPECT_FALSE(first_released) << "the second buffer uses the engine";
  second->reset();
  EXPECT_TRUE(first_released);
  bool failed_released = false;
  auto invented = devices.Open(Charged(Uuid(), {.address = 1, .length = 1}, failed_released));
  EXPECT_EQ(invented.status().error(), EINVAL);
  EXPECT_TRUE(failed_released);
}

TEST_P(DeviceMemory, EngineThatFailed_GivesItsMemoryBack_AndOneWhoseCopiesNeverEndDoesNot) {
  for (const bool silent : {false, true}) {
    const FakeCudaCounts before = Counts();
    bool released = false;
    auto engine = DeviceEngine::Open(
        driver_, {.device = Uuid(),
                  .patience = Milliseconds(20),
                  .costs = std::make_shared<EngineCosts>([&released] { released = true; })});
    ASSERT_TRUE(engine.ok());
    auto buffer = DeviceBuffer::Open(*engine, PlaceOf(address_, kLength));
    ASSERT_TRUE(buffer.ok()) << buffer.status().text();
    space_->Add(*buffer);
    if (silent) {
      Call<void(int)>("FakeCudaWaits")(-1);
    } else {
      Call<void(int)>("FakeCudaLose")(1);
    }
    std::vector<uint8_t> bytes(8);
    std::vector<MemoryOp> ops = {Op(OpKind::kWrite, address_, bytes)};
    EXPECT_EQ(Execute(ops), 0u);
    Call<void(int)>("FakeCudaLose")(0);
    space_->Remove(buffer->get());
    buffer->reset();
    engine->reset();
    EXPECT_EQ(released, !silent);
    EXPECT_EQ(Counts().pinned - before.pinned, silent ? 1 : 0);
    EXPECT_EQ(Counts().contexts - before.contexts, silent ? 1 : 0);
    EXPECT_EQ(Counts().opened - before.opened, silent ? 1 : 0);
    Call<void(int)>("FakeCudaWaits")(3);
  }
}

TEST_P(DeviceMemory, CopiesThatEndAfterAll_LetTheEngineEnd) {
  const FakeCudaCounts before = Counts();
  Register(Engine(Milliseconds(20)), address_, kLength);
  Call<void(int)>("FakeCudaWaits")(-1);
  std::vector<uint8_t> bytes(8);
  std::vector<MemoryOp> ops = {Op(OpKind::kWrite, address_, bytes)};
  EXPECT_EQ(Execute(ops), 0u);
  Call<void(int)>("FakeCudaWaits")(0);
  space_->Remove(buffers_.back().get());
  buffers_.clear();
  EXPECT_EQ(Counts().pinned, before.pinned);
  EXPECT_EQ(Counts().contexts, before.contexts);
}

TEST_P(DeviceMemory, ContextThatIsDestroyed_IsALostDevice) {
  const auto engine = Engine();
  Register(engine, address_, kLength);
  ASSERT_EQ(driver_->destroy_context(engine->context()), kCuSuccess);
  std::vector<uint8_t> bytes(8);
  std::vector<MemoryOp> ops = {Op(OpKind::kWrite, address_, bytes)};
  EXPECT_EQ(Execute(ops), 0u);
  EXPECT_TRUE(engine->lost());
}

TEST_P(DeviceMemory, AnErrorOfOneSession_LeavesTheOthers) {
  const CuPointer other = Allocate(4096);
  const auto engine = Engine();
  Register(engine, other, 4096);
  // Another session, on the other device: the fake lets one context a device open a process's
  // handles.
  auto elsewhere = DeviceEngine::Open(driver_, {.device = Uuid(1)});
  ASSERT_TRUE(elsewhere.ok());
  Register(*elsewhere, address_, kLength);
  Call<int(CuPointer)>(Name("cuMemFree_v2", "hipFree"))(other);
  allocated_.pop_back();
  std::vector<uint8_t> bytes = Pattern(8, 1);
  std::vector<MemoryOp> freed = {Op(OpKind::kWrite, other, bytes)};
  EXPECT_EQ(Execute(freed), 0u);
  EXPECT_TRUE(engine->lost());
  std::vector<MemoryOp> ops = {Op(OpKind::kWrite, address_, bytes)};
  EXPECT_EQ(Execute(ops), 1u);
  EXPECT_EQ(Read(address_, 8), bytes);
}

TEST_P(DeviceMemory, AfterTheLossOfADevice_NewBuffersWork) {
  OpenDevices devices({ROCEGW_FAKE_CUDA, ROCEGW_FAKE_HIP});
  auto lost = devices.Open(WishFor(Uuid(), PlaceOf(address_, kLength)));
  ASSERT_TRUE(lost.ok());
  space_->Add(*lost);
  std::vector<uint8_t> bytes = Pattern(8, 4);
  std::vector<MemoryOp> ops = {Op(OpKind::kWrite, address_, bytes)};
  Call<void(int)>("FakeCudaLose")(1);
  EXPECT_EQ(Execute(ops), 0u);
  Call<void(int)>("FakeCudaLose")(0);
  auto again = devices.Open(WishFor(Uuid(), PlaceOf(address_, kLength)));
  ASSERT_TRUE(again.ok());
  space_->Add(*again);
  EXPECT_EQ(Execute(ops), 1u) << "the buffer that was added last serves the address";
  EXPECT_EQ(Read(address_, 8), bytes);
  space_->Remove(again->get());
  EXPECT_EQ(Execute(ops), 0u) << "and the earlier one after it";
}

TEST_P(DeviceMemory, EndOfTheProcess_IsThatOfItsOrdinaryMemory) {
  EXPECT_FALSE(space_->Gone());
  host_->gone = true;
  EXPECT_TRUE(space_->Gone());
}

// Memory of cuMemCreate, which is handed over by a descriptor.
class SharedByDescriptor : public DeviceMemory {
 protected:
  static constexpr uint64_t kShared = uint64_t{4} << 20;
  void SetUp() override {
    DeviceMemory::SetUp();
    struct {
      int type = 1, handle_types = 1, location_type = 1, location = 0;
    } properties;
    ASSERT_EQ(Call<int(CuAllocation*, size_t, void*, unsigned long long)>(
                  Name("cuMemCreate", "hipMemCreate"))(&allocation_, kShared, &properties, 0),
              0);
    ASSERT_EQ(driver_->reserve(&shared_, kShared, 0, 0, 0), 0);
    ASSERT_EQ(driver_->map(shared_, kShared, 0, allocation_, 0), 0);
    const CuAccess access{1, 0, 3};
    ASSERT_EQ(driver_->set_access(shared_, kShared, &access, 1), 0);
  }
  void TearDown() override {
    driver_->unmap(shared_, kShared);
    driver_->free_reserved(shared_, kShared);
    driver_->release(allocation_);
    DeviceMemory::TearDown();
  }
  DeviceBuffer::Place Exported(uint64_t length = kShared) {
    int descriptor = -1;
    EXPECT_EQ(Call<int(void*, uint64_t, int, unsigned long long)>(
                  Name("cuMemExportToShareableHandle", "hipMemExportToShareableHandle"))(
                  &descriptor, allocation_, 1, 0),
              0);
    DeviceBuffer::Place place{.by = DeviceBuffer::Place::By::kDescriptor};
    place.descriptor = std::make_shared<UniqueFd>(descriptor);
    place.address = shared_;
    place.length = length;
    return place;
  }

  CuAllocation allocation_ = 0;
  CuPointer shared_ = 0;
};

TEST_P(SharedByDescriptor, CopiesReachIt_AndTheEndClosesIt) {
  const int opened = Counts().opened;
  {
    auto buffer = DeviceBuffer::Open(Engine(), Exported());
    ASSERT_TRUE(buffer.ok()) << buffer.status().text();
    space_->Add(*buffer);
    std::vector<uint8_t> bytes = Pattern(100, 7);
    std::vector<MemoryOp> ops = {Op(OpKind::kWrite, shared_ + kShared - 100, bytes)};
    EXPECT_EQ(Execute(ops), 1u);
    EXPECT_EQ(Read(shared_ + kShared - 100, 100), bytes);
    EXPECT_EQ(Counts().opened, opened + 1);
    space_->Remove(buffer->get());
  }
  EXPECT_EQ(Counts().opened, opened);
}

TEST_P(SharedByDescriptor, OtherDescriptorsAndLengths_AreRefused) {
  const int opened = Counts().opened;
  const auto engine = Engine();
  EXPECT_EQ(DeviceBuffer::Open(engine, Exported(2 * kShared)).status().error(), EINVAL)
      << "longer than the allocation";
  EXPECT_EQ(DeviceBuffer::Open(engine, Exported(kShared - 1)).status().error(), EINVAL);
  EXPECT_EQ(DeviceBuffer::Open(engine, Exported(0)).status().error(), EINVAL);
  DeviceBuffer::Place other = Exported();
  other.descriptor = std::make_shared<UniqueFd>(::memfd_create("another", MFD_CLOEXEC));
  EXPECT_EQ(DeviceBuffer::Open(engine, other).status().error(), EINVAL) << "of no allocation";
  EXPECT_EQ(Counts().opened, opened) << "nothing stays open";
}

// A gateway in the program's own process: the program's addresses and context.
class OwnMemoryOfTheProcess : public DeviceMemory {
 protected:
  OpenDevices::Wish Own(CuPointer address, uint64_t length) {
    OpenDevices::Wish wish = WishFor(Uuid(), {.by = DeviceBuffer::Place::By::kOwnAddress});
    wish.place.address = address;
    wish.place.length = length;
    return wish;
  }
};

TEST_P(OwnMemoryOfTheProcess, IsReachedInItsContext_WhereDriversMayBeCalled) {
  const FakeCudaCounts before = Counts();
  int calls = 0;
  {
    OpenDevices devices({ROCEGW_FAKE_CUDA, ROCEGW_FAKE_HIP},
                        [&calls](const std::function<void()>& call) {
                          ++calls;
                          call();
                        });
    auto buffer = devices.Open(Own(address_, kLength));
    ASSERT_TRUE(buffer.ok()) << buffer.status().text();
    EXPECT_EQ(Counts().contexts, before.contexts) << "no context of the gateway's";
    EXPECT_EQ(calls, 1);
    space_->Add(*buffer);
    std::vector<uint8_t> bytes = Pattern(100, 7);
    std::vector<MemoryOp> ops = {Op(OpKind::kWrite, address_ + 9, bytes)};
    EXPECT_EQ(Execute(ops), 1u);
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(Read(address_ + 9, 100), bytes);
    EXPECT_EQ(devices.Open(Own(address_, kLength + 1)).status().error(), EINVAL);
    EXPECT_EQ(devices.Open(Own(0x1000, 1)).status().error(), EINVAL);
    space_->Remove(buffer->get());
  }
  EXPECT_EQ(Counts().pinned, before.pinned);
  EXPECT_EQ(Counts().opened, before.opened);
}

TEST_P(OwnMemoryOfTheProcess, EndOfTheProgramsContext_IsALostDevice) {
  CuContext context = nullptr;
  ASSERT_EQ(driver_->create_context(&context, 0, 0), kCuSuccess);
  const CuPointer other = Allocate(4096);
  allocated_.pop_back();  // ends with its context
  CuContext popped = nullptr;
  driver_->pop_context(&popped);
  OpenDevices devices({ROCEGW_FAKE_CUDA, ROCEGW_FAKE_HIP});
  auto buffer = devices.Open(Own(other, 4096));
  ASSERT_TRUE(buffer.ok()) << buffer.status().text();
  space_->Add(*buffer);
  ASSERT_EQ(driver_->destroy_context(context), kCuSuccess);
  std::vector<uint8_t> bytes(8);
  std::vector<MemoryOp> ops = {Op(OpKind::kRead, other, bytes)};
  EXPECT_EQ(Execute(ops), 0u);
  EXPECT_TRUE((*buffer)->engine().lost());
  auto again = devices.Open(Own(address_, kLength));
  EXPECT_TRUE(again.ok()) << "another context of the program works";
  space_->Remove(buffer->get());
}

const auto kKinds = ::testing::Values(DriverKind::kCuda, DriverKind::kHip);
const auto kNameOfKind = [](const auto& test) { return std::string(NameOf(test.param)); };
INSTANTIATE_TEST_SUITE_P(Drivers, DeviceMemory, kKinds, kNameOfKind);
INSTANTIATE_TEST_SUITE_P(Drivers, SharedByDescriptor, kKinds, kNameOfKind);
INSTANTIATE_TEST_SUITE_P(Drivers, OwnMemoryOfTheProcess, kKinds, kNameOfKind);

}  // namespace
}  // namespace rocegw::device_memory
