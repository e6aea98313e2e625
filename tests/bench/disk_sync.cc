// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/disk_sync.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "gateway/base/unique_fd.h"
#include "tests/bench/measurement.h"

namespace rocegw::bench {
namespace {

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

}  // namespace

Acknowledged Summarise(std::vector<double> times, double seconds) {
  if (times.empty()) {
    std::fputs("nothing was done within a turn\n", stderr);
    std::exit(1);
  }
  std::sort(times.begin(), times.end());
  return {static_cast<double>(times.size()) / seconds, 1e3 * times[times.size() / 2],
          1e3 * times[times.size() * 99 / 100]};
}

Acknowledged SyncRate(const std::string& file, size_t size, bool in_place, double seconds) {
  constexpr off_t kPieces = 500;
  const UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const std::string piece(size, 'x');
  const auto write = [&](off_t i) {
    const off_t at = i * static_cast<off_t>(size);
    if (::pwrite(fd.get(), piece.data(), size, at) != static_cast<ssize_t>(size))
      Die("cannot write");
  };
  for (off_t i = 0; in_place && i < kPieces; ++i) write(i);
  ::fsync(fd.get());
  std::vector<double> times;
  const double begin = Seconds();
  double now = begin;
  for (off_t i = 0; now - begin < seconds; ++i) {
    write(in_place ? i % kPieces : i);
    if (::fdatasync(fd.get()) != 0) Die("cannot sync");
    const double then = std::exchange(now, Seconds());
    times.push_back(now - then);
  }
  return Summarise(std::move(times), now - begin);
}

}  // namespace rocegw::bench
