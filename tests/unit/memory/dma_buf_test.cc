// SPDX-License-Identifier: Apache-2.0
// Dma-bufs: which descriptors and exporters are accepted. tests/interop/dma_buf has the tests on
// real ones.
#include "gateway/memory/dma_buf.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "gateway/memory/region.h"

namespace rocegw::memory {
namespace {

constexpr uint64_t kAddress = 0x7F0000000000;
constexpr uint64_t kBufferLength = 4 * 4096;

UniqueFd Memfd(uint64_t length) {
  UniqueFd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(length)), 0);
  return fd;
}

TEST(DmaBuf, Exporter_IsThatOfTheKernelsLine_NotOfTheName) {
  EXPECT_EQ(ExporterIn("pos:\t0\nsize:\t4096\ncount:\t1\nexp_name:\tudmabuf\n"), "udmabuf");
  EXPECT_EQ(ExporterIn("exp_name:\tvgem\nname:\ta\nexp_name:\tudmabuf\n"), "vgem")
      << "the program chose the name";
  EXPECT_EQ(ExporterIn("name:\texp_name:\tudmabuf\n"), "");
  EXPECT_EQ(ExporterIn("exp_name:\tcut off"), "cut off");
  EXPECT_EQ(ExporterIn(""), "");
}

TEST(DmaBuf, OtherDescriptors_AreNotDmaBufs) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd files[] = {UniqueFd(ends[0]), UniqueFd(ends[1]), Memfd(kBufferLength),
                            UniqueFd(::epoll_create1(EPOLL_CLOEXEC)),
                            UniqueFd(::open("/proc/self/mem", O_RDWR | O_CLOEXEC))};
  for (const UniqueFd& file : files) {
    const Status inspected = CheckDmaBuf(file.get());
    ASSERT_FALSE(inspected.ok());
    EXPECT_EQ(inspected.error(), EINVAL);
  }
  EXPECT_EQ(CheckDmaBuf(-1).error(), EBADF);
}

TEST(DmaBuf, Import_OnlyBuffersThatKeepTheirPages_AndOnlyTheirBytes) {
  const auto import = [](const char* exporter, uint64_t length, uint64_t address = kAddress) {
    auto made = Region::Import(Memfd(kBufferLength), {exporter, kBufferLength}, address, length);
    return made.ok() ? 0 : made.status().error();
  };
  EXPECT_EQ(import("udmabuf", kBufferLength), 0);
  EXPECT_EQ(import("system", 4096), 0);
  EXPECT_EQ(import("i915", kBufferLength), EOPNOTSUPP);
  EXPECT_EQ(import("nv_dmabuf", kBufferLength), EOPNOTSUPP);
  EXPECT_EQ(import("", kBufferLength), EOPNOTSUPP);
  EXPECT_EQ(import("udmabuf", kBufferLength + 4096), EINVAL) << "beyond its end";
  EXPECT_EQ(import("udmabuf", 100), EINVAL);
  EXPECT_EQ(import("udmabuf", 0), EINVAL);
  EXPECT_EQ(import("udmabuf", kBufferLength, kAddress + 1), EINVAL);
  EXPECT_EQ(import("udmabuf", kBufferLength, ~uint64_t{4095}), EINVAL);
}

TEST(DmaBuf, Import_OpenForReadingOnly_IsRefused) {
  const UniqueFd memory = Memfd(kBufferLength);
  const std::string path = "/proc/self/fd/" + std::to_string(memory.get());
  UniqueFd reading(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(reading.valid());
  const auto made =
      Region::Import(std::move(reading), {"udmabuf", kBufferLength}, kAddress, kBufferLength);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().error(), EACCES);
}

TEST(DmaBuf, Region_KnowsItsExporter) {
  auto made =
      Region::Import(Memfd(kBufferLength), {"udmabuf", kBufferLength}, kAddress, kBufferLength);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->exporter(), "udmabuf");
  EXPECT_EQ((*Region::Create(kAddress, kBufferLength))->exporter(), "");
}

}  // namespace
}  // namespace rocegw::memory
