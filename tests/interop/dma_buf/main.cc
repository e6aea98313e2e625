// SPDX-License-Identifier: Apache-2.0
// dma_buf_check: regions of real dma-bufs. Both mappings of one, the program's and the gateway's,
// are the same memory, which stays while the gateway has it. Needs a kernel with /dev/udmabuf or
// the driver vgem: the interop case dma_buf.guest runs it in the guest.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "gateway/memory/direct_copy.h"
#include "gateway/memory/dma_buf.h"
#include "gateway/memory/region.h"

namespace rocegw::memory {
namespace {

constexpr uint64_t kLength = 4 * 4096;

UniqueFd Memfd() {
  UniqueFd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), kLength), 0);
  return fd;
}

// Returns a dma-buf of pages of a memfd; invalid: the kernel has no udmabuf.
UniqueFd MakeUdmabuf(int memory) {
  const UniqueFd device(::open("/dev/udmabuf", O_RDWR | O_CLOEXEC));
  if (!device.valid()) return {};
  EXPECT_EQ(::fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  udmabuf_create create{};
  create.memfd = static_cast<uint32_t>(memory);
  create.flags = UDMABUF_FLAGS_CLOEXEC;
  create.size = kLength;
  return UniqueFd(::ioctl(device.get(), UDMABUF_CREATE, &create));
}

// Part of drm.h and drm_mode.h, which belong to a package that nothing else here needs.
struct DumbBuffer {
  uint32_t height, width, bpp, flags, handle, pitch;
  uint64_t size;
};
struct PrimeHandle {
  uint32_t handle, flags;
  int32_t fd;
};
constexpr unsigned long kCreateDumb = _IOWR('d', 0xB2, DumbBuffer);
constexpr unsigned long kHandleToFd = _IOWR('d', 0x2D, PrimeHandle);

// Returns a dma-buf of the virtual graphics device; invalid: its driver is not loaded.
UniqueFd MakeVgemBuffer() {
  const UniqueFd device(::open("/dev/dri/card0", O_RDWR | O_CLOEXEC));
  DumbBuffer buffer{.height = 1, .width = kLength / 4, .bpp = 32};
  if (::ioctl(device.get(), kCreateDumb, &buffer) != 0) return {};
  PrimeHandle handle{.handle = buffer.handle, .flags = O_RDWR | O_CLOEXEC};
  if (::ioctl(device.get(), kHandleToFd, &handle) != 0) return {};
  return UniqueFd(handle.fd);
}

// Dma-buf of the kernel, mapped as a program maps it.
class RealDmaBuf : public ::testing::Test {
 protected:
  void SetUp() override {
    buffer_ = MakeUdmabuf(memory_.get());
    if (buffer_.valid()) exporter_ = "udmabuf";
    if (!buffer_.valid()) buffer_ = MakeVgemBuffer();
    ASSERT_TRUE(buffer_.valid()) << "neither /dev/udmabuf nor vgem's /dev/dri/card0";
    program_ = static_cast<uint8_t*>(
        ::mmap(nullptr, kLength, PROT_READ | PROT_WRITE, MAP_SHARED, buffer_.get(), 0));
    ASSERT_NE(program_, MAP_FAILED) << std::strerror(errno);
  }
  void TearDown() override {
    if (buffer_.valid()) ::munmap(program_, kLength);
  }
  uint64_t address() const { return reinterpret_cast<uint64_t>(program_); }
  std::shared_ptr<Region> Import() {
    // Vgem's buffers keep their pages as well, but other drivers export by the same name.
    auto made =
        Region::Import(UniqueFd(::dup(buffer_.get())), {"udmabuf", kLength}, address(), kLength);
    EXPECT_TRUE(made.ok());
    return *made;
  }

  UniqueFd memory_ = Memfd();
  UniqueFd buffer_;
  std::string exporter_ = "drm";
  uint8_t* program_ = nullptr;
};

TEST_F(RealDmaBuf, Inspection_FindsExporterAndLength) {
  auto inspected = InspectDmaBuf(buffer_.get());
  ASSERT_TRUE(inspected.ok()) << inspected.status().text();
  EXPECT_EQ(inspected->exporter, exporter_);
  EXPECT_EQ(inspected->length, kLength);
}

TEST_F(RealDmaBuf, OperationsReachTheProgramsBytes) {
  const std::shared_ptr<Region> region = Import();
  AtomicLocks locks;
  uint8_t bytes[3000];
  std::memset(bytes, 0x5A, sizeof bytes);
  MemoryOp write{.kind = OpKind::kWrite, .publish = true, .length = sizeof bytes};
  write.address = address() + 2 * 4096 - 100;
  write.direct = region->Find(write.address, write.length);
  write.buffer = bytes;
  ASSERT_TRUE(ExecuteDirect(write, locks));
  EXPECT_EQ(program_[2 * 4096 - 101], 0);
  EXPECT_EQ(program_[2 * 4096 - 100], 0x5A);
  EXPECT_EQ(program_[2 * 4096 + 2899], 0x5A);
  EXPECT_EQ(program_[2 * 4096 + 2900], 0);

  program_[8] = 40;
  uint64_t original = 0;
  MemoryOp add{.kind = OpKind::kFetchAdd, .length = 8, .address = address() + 8};
  add.direct = region->Find(add.address, 8);
  add.buffer = reinterpret_cast<uint8_t*>(&original);
  add.swap_or_add = 2;
  ASSERT_TRUE(ExecuteDirect(add, locks));
  EXPECT_EQ(original, 40u);
  EXPECT_EQ(program_[8], 42);
}

TEST_F(RealDmaBuf, ProgramCannotTakeThePagesAway) {
  const std::shared_ptr<Region> region = Import();
  uint8_t* const first = region->Find(address(), 1);
  program_[0] = 7;
  EXPECT_EQ(::ftruncate(memory_.get(), 0), exporter_ == "udmabuf" ? -1 : 0);
  ::fallocate(memory_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kLength);
  memory_.Reset();
  buffer_.Reset();
  ::munmap(program_, kLength);
  EXPECT_EQ(*first, 7);
  *first = 8;
  EXPECT_EQ(*first, 8);
}

TEST_F(RealDmaBuf, ASuccessorAdoptsIt_IfItsPagesStay) {
  const std::shared_ptr<Region> region = Import();
  auto adopted = Region::Adopt(UniqueFd(::dup(region->fd())), address(), kLength);
  if (exporter_ != "udmabuf") {
    EXPECT_EQ(adopted.status().error(), EOPNOTSUPP) << "the successor inspects it, too";
    return;
  }
  ASSERT_TRUE(adopted.ok());
  EXPECT_EQ((*adopted)->exporter(), "udmabuf");
  program_[9] = 3;
  EXPECT_EQ(*(*adopted)->Find(address() + 9, 1), 3);
}

}  // namespace
}  // namespace rocegw::memory
