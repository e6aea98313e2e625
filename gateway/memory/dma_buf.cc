// SPDX-License-Identifier: Apache-2.0
#include "gateway/memory/dma_buf.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "gateway/base/unique_fd.h"

namespace rocegw::memory {

std::string_view ExporterIn(std::string_view fdinfo) {
  constexpr std::string_view kKey = "exp_name:\t";
  while (!fdinfo.empty()) {
    const std::string_view line = fdinfo.substr(0, fdinfo.find('\n'));
    if (line.starts_with(kKey)) return line.substr(kKey.size());
    fdinfo.remove_prefix(line.size() == fdinfo.size() ? line.size() : line.size() + 1);
  }
  return {};
}

bool KeepsPages(std::string_view exporter) { return exporter == "udmabuf" || exporter == "system"; }

Status CheckDmaBuf(int fd) {
  struct statfs file_system {};
  if (::fstatfs(fd, &file_system) != 0) {
    return {EBADF, std::string("dma-buf: ") + std::strerror(errno)};
  }
  if (file_system.f_type != DMA_BUF_MAGIC) return {EINVAL, "descriptor is not a dma-buf"};
  return OkStatus();
}

StatusOr<DmaBuf> InspectDmaBuf(int fd) {
  const off_t length = ::lseek(fd, 0, SEEK_END);
  if (length <= 0) return Status(EINVAL, "dma-buf without a size");
  const std::string path = "/proc/self/fdinfo/" + std::to_string(fd);
  const UniqueFd info(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t read = info.valid() ? ::read(info.get(), text, sizeof text) : -1;
  if (read < 0) return Status(EIO, "dma-buf: " + path + ": " + std::strerror(errno));
  return DmaBuf{std::string(ExporterIn({text, static_cast<size_t>(read)})),
                static_cast<uint64_t>(length)};
}

}  // namespace rocegw::memory
