// SPDX-License-Identifier: Apache-2.0
// Copies of device memory, on a fake CUDA (tests/support/fake_cuda): order, batches, faults, and
// what a lost device does.
#include <dlfcn.h>
#include <gtest/gtest.h>

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

class DeviceMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = ::dlopen(ROCEGW_FAKE_CUDA, RTLD_NOW);
    ASSERT_NE(library_, nullptr) << ::dlerror();
    auto cuda = Cuda::Load(ROCEGW_FAKE_CUDA);
    ASSERT_TRUE(cuda.ok()) << cuda.status().text();
    cuda_ = *cuda;
    Call<void(int)>("FakeCudaLose")(0);
    Call<void(int)>("FakeCudaWaits")(3);
    Call<void(int, int)>("FakeCudaFail")(0, -1);
    // The client: a context with an allocation.
    ASSERT_EQ(cuda_->create_context(&context_, 0, 0), kCuSuccess);
    address_ = Allocate(kLength);
    host_ = std::make_shared<HostSpace>();
    space_ = std::make_unique<DeviceSpace>(host_);
  }
  void TearDown() override {
    Call<void(int)>("FakeCudaLose")(0);
    space_.reset();
    buffers_.clear();
    for (const CuPointer one : allocated_) Call<int(CuPointer)>("cuMemFree_v2")(one);
    cuda_->destroy_context(context_);
    CuContext popped = nullptr;
    cuda_->pop_context(&popped);
  }
  template <typename Function>
  Function* Call(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(library_, name));
  }
  FakeCudaCounts Counts() { return Call<FakeCudaCounts()>("FakeCudaCount")(); }
  CuPointer Allocate(size_t length) {
    CuPointer address = 0;
    EXPECT_EQ(Call<int(CuPointer*, size_t)>("cuMemAlloc_v2")(&address, length), kCuSuccess);
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
    EXPECT_EQ(Call<int(CuIpcHandle*, CuPointer)>("cuIpcGetMemHandle")(&place.handle, address),
              kCuSuccess);
    return place;
  }
  std::shared_ptr<DeviceEngine> Engine(Duration patience = Seconds(5)) {
    auto engine = DeviceEngine::Open(cuda_, Uuid(), patience);
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
    EXPECT_EQ(Call<int(void*, CuPointer, size_t)>("cuMemcpyDtoH_v2")(bytes.data(), address, length),
              kCuSuccess);
    return bytes;
  }
  size_t Execute(std::vector<MemoryOp>& ops) { return space_->Execute(ops, counts_); }

  void* library_ = nullptr;
  std::shared_ptr<const Cuda> cuda_;
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

TEST_F(DeviceMemory, Library_ThatIsNotThere_IsNoDevice) {
  EXPECT_EQ(Cuda::Load("libcuda_of_nobody.so.1").status().error(), ENODEV);
  EXPECT_EQ(Cuda::Load("libm.so.6").status().error(), ENODEV) << "another library";
  EXPECT_EQ(DeviceEngine::Open(cuda_, Uuid(9)).status().error(), ENODEV) << "another device";
}

TEST_F(DeviceMemory, Handles_ReachTheirAllocationAlone) {
  const int opened = Counts().opened;
  const auto engine = Engine();
  EXPECT_EQ(DeviceBuffer::Open(engine, PlaceOf(address_, kLength + 1)).status().error(), EINVAL)
      << "longer than the allocation";
  DeviceBuffer::Place invented{.address = address_, .length = kLength};
  EXPECT_EQ(DeviceBuffer::Open(engine, invented).status().error(), EINVAL);
  EXPECT_EQ(Counts().opened, opened) << "nothing stays open";
}

TEST_F(DeviceMemory, WritesAndReads_InOrder_OneEventForABatch) {
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

TEST_F(DeviceMemory, OperationsLongerThanStagingMemory) {
  Register(Engine(), address_, kLength);
  std::vector<uint8_t> long_write = Pattern(2 * kStagingBytes + 12'345, 3);
  std::vector<uint8_t> long_read(long_write.size());
  std::vector<MemoryOp> ops = {Op(OpKind::kWrite, address_ + 1, long_write),
                               Op(OpKind::kRead, address_ + 1, long_read)};
  EXPECT_EQ(Execute(ops), 2u);
  EXPECT_EQ(long_read, long_write);
}

TEST_F(DeviceMemory, OtherAddresses_AreOrdinaryMemory_InOrder) {
  Register(Engine(), address_, kLength);
  std::vector<uint8_t> bytes(64);
  std::vector<MemoryOp> ops = {
      Op(OpKind::kRead, 0x1000, bytes), Op(OpKind::kWrite, address_, bytes),
      Op(OpKind::kRead, address_ - 1, bytes), Op(OpKind::kRead, address_ + kLength, bytes)};
  EXPECT_EQ(Execute(ops), 4u);
  EXPECT_EQ(host_->asked, (std::vector<uint64_t>{0x1000, address_ - 1, address_ + kLength}));
}

TEST_F(DeviceMemory, AtomicsAndRangesBeyondTheBuffer_Fault_AndReachNothing) {
  Register(Engine(), address_, kLength);
  std::vector<uint8_t> word = Pattern(8, 1);
  std::vector<MemoryOp> ops = {Op(OpKind::kWrite, address_, word),
                               Op(OpKind::kFetchAdd, address_, word)};
  EXPECT_EQ(Execute(ops), 1u);
  std::vector<MemoryOp> beyond = {Op(OpKind::kWrite, address_ + kLength - 4, word)};
  EXPECT_EQ(Execute(beyond), 0u);
  EXPECT_TRUE(host_->asked.empty());
}

TEST_F(DeviceMemory, ARefusedCopy_FaultsAlone) {
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

TEST_F(DeviceMemory, AFreedAllocation_Faults) {
  const CuPointer other = Allocate(4096);
  Register(Engine(), other, 4096);
  Call<int(CuPointer)>("cuMemFree_v2")(other);
  allocated_.pop_back();
  std::vector<uint8_t> bytes(8);
  std::vector<MemoryOp> ops = {Op(OpKind::kRead, other, bytes)};
  EXPECT_EQ(Execute(ops), 0u);
}

TEST_F(DeviceMemory, ALostDevice_FaultsEverything_AndTheEndDoesNotWaitForIt) {
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

TEST_F(DeviceMemory, CopiesThatNeverEnd_AreGivenUp) {
  Register(Engine(Milliseconds(20)), address_, kLength);
  Call<void(int)>("FakeCudaWaits")(-1);
  std::vector<uint8_t> bytes(8);
  std::vector<MemoryOp> ops = {Op(OpKind::kWrite, address_, bytes)};
  EXPECT_EQ(Execute(ops), 0u);
}

TEST_F(DeviceMemory, BuffersOfADeviceShareItsContext_AndTheEndOfTheLastFreesIt) {
  const int contexts = Counts().contexts;
  const int opened = Counts().opened;  // including allocations of lost devices
  const CuPointer other = Allocate(4096);
  OpenDevices devices(ROCEGW_FAKE_CUDA);
  auto first = devices.Open(Uuid(), PlaceOf(address_, kLength));
  auto second = devices.Open(Uuid(), PlaceOf(other, 4096));
  auto elsewhere = devices.Open(Uuid(1), PlaceOf(other, 4096));
  ASSERT_TRUE(first.ok() && second.ok() && elsewhere.ok());
  EXPECT_EQ(Counts().contexts, contexts + 2) << "one a device";
  EXPECT_EQ(Counts().opened, opened + 3);
  first->reset();
  EXPECT_EQ(Counts().contexts, contexts + 2);
  second->reset();
  elsewhere->reset();
  EXPECT_EQ(Counts().contexts, contexts);
  EXPECT_EQ(Counts().opened, opened);
  EXPECT_EQ(OpenDevices("libcuda_of_nobody.so.1").Open(Uuid(), {}).status().error(), ENODEV);
}

TEST_F(DeviceMemory, AfterTheLossOfADevice_NewBuffersWork) {
  OpenDevices devices(ROCEGW_FAKE_CUDA);
  auto lost = devices.Open(Uuid(), PlaceOf(address_, kLength));
  ASSERT_TRUE(lost.ok());
  space_->Add(*lost);
  std::vector<uint8_t> bytes = Pattern(8, 4);
  std::vector<MemoryOp> ops = {Op(OpKind::kWrite, address_, bytes)};
  Call<void(int)>("FakeCudaLose")(1);
  EXPECT_EQ(Execute(ops), 0u);
  Call<void(int)>("FakeCudaLose")(0);
  auto again = devices.Open(Uuid(), PlaceOf(address_, kLength));
  ASSERT_TRUE(again.ok());
  space_->Add(*again);
  EXPECT_EQ(Execute(ops), 1u) << "the buffer that was added last serves the address";
  EXPECT_EQ(Read(address_, 8), bytes);
  space_->Remove(again->get());
  EXPECT_EQ(Execute(ops), 0u) << "and the earlier one after it";
}

TEST_F(DeviceMemory, EndOfTheProcess_IsThatOfItsOrdinaryMemory) {
  EXPECT_FALSE(space_->Gone());
  host_->gone = true;
  EXPECT_TRUE(space_->Gone());
}

}  // namespace
}  // namespace rocegw::device_memory
