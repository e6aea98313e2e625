// SPDX-License-Identifier: Apache-2.0
// Canary workload of a block device: several threads write blocks with a sequence number and a
// checksum, past all caches, and read acknowledged blocks back. Ends at the first block that is
// not as it was acknowledged, and at the first error of the device.
//
//   block_journal DEVICE SECONDS STATUS_FILE    SIGTERM ends it earlier; all blocks are compared
//
// STATUS_FILE holds "intact" or "broken" and counts, for whoever asks while it runs.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kBlock = 4096;
constexpr size_t kWords = kBlock / sizeof(uint64_t);
constexpr size_t kThreads = 4;
constexpr size_t kBlocksOfThread = 256;
constexpr int kStatusMs = 200;
// An emulated host has to find time for its other programs.
constexpr int kPauseMs = 20;

std::atomic<bool> stop = false;
std::atomic<uint64_t> writes = 0;
std::atomic<uint64_t> reads = 0;
std::atomic<int64_t> longest_us = 0;

// A block's words follow from its place and sequence number, so that any word tells a wrong block.
uint64_t WordOf(size_t block, uint64_t sequence, size_t index) {
  uint64_t word = (block + 1) * 0x9e3779b97f4a7c15U + sequence * 0xbf58476d1ce4e5b9U + index;
  word ^= word >> 31;
  return word * 0x94d049bb133111ebU;
}

class StatusFile {
 public:
  explicit StatusFile(std::string path) : path_(std::move(path)) {}

  void Write(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (broken_) return;
    broken_ = text.starts_with("broken");
    const std::string fresh = path_ + ".new";
    std::FILE* const file = std::fopen(fresh.c_str(), "w");
    if (file == nullptr) return;
    std::fprintf(file, "%s\n", text.c_str());
    std::fclose(file);
    std::rename(fresh.c_str(), path_.c_str());
  }

 private:
  std::string path_;
  std::mutex mutex_;
  bool broken_ = false;
};

[[noreturn]] void Break(StatusFile& status, const std::string& why) {
  status.Write("broken: " + why);
  std::printf("broken: %s\n", why.c_str());
  std::fflush(stdout);
  _exit(1);
}

// Writes and compares the blocks of one thread.
class Worker {
 public:
  Worker(int device, size_t first, StatusFile& status)
      : device_(device),
        first_(first),
        status_(status),
        buffer_(static_cast<uint64_t*>(std::aligned_alloc(kBlock, kBlock)), &std::free),
        sequences_(kBlocksOfThread),
        random_(first) {}

  void Run() {
    while (!stop) {
      WriteBlock(random_() % kBlocksOfThread);
      Compare(random_() % kBlocksOfThread);
      (void)::poll(nullptr, 0, kPauseMs);
    }
    for (size_t i = 0; i < kBlocksOfThread; ++i) Compare(i);
  }

 private:
  void WriteBlock(size_t index) {
    const uint64_t sequence = sequences_[index] + 1;
    for (size_t i = 0; i < kWords; ++i) buffer_.get()[i] = WordOf(first_ + index, sequence, i);
    Timed([&] { return ::pwrite(device_, buffer_.get(), kBlock, Offset(index)); }, "write");
    sequences_[index] = sequence;
    ++writes;
  }

  void Compare(size_t index) {
    if (sequences_[index] == 0) return;
    Timed([&] { return ::pread(device_, buffer_.get(), kBlock, Offset(index)); }, "read");
    for (size_t i = 0; i < kWords; ++i) {
      if (buffer_.get()[i] == WordOf(first_ + index, sequences_[index], i)) continue;
      Break(status_, "block " + std::to_string(first_ + index) + " is not the acknowledged one");
    }
    ++reads;
  }

  template <typename Call>
  void Timed(const Call& call, const char* what) {
    const auto began = Clock::now();
    if (call() != static_cast<ssize_t>(kBlock))
      Break(status_, std::string(what) + ": " + std::strerror(errno));
    const int64_t took =
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began).count();
    int64_t before = longest_us;
    while (took > before && !longest_us.compare_exchange_weak(before, took)) {
    }
  }

  off_t Offset(size_t index) const { return static_cast<off_t>((first_ + index) * kBlock); }

  int device_;
  size_t first_;
  StatusFile& status_;
  std::unique_ptr<uint64_t, decltype(&std::free)> buffer_;
  std::vector<uint64_t> sequences_;  // of the acknowledged content, 0: never written
  std::mt19937_64 random_;
};

std::string Counts() {
  return std::to_string(writes) + " writes, " + std::to_string(reads) +
         " reads compared, longest " + std::to_string(longest_us / 1000) + " ms";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  StatusFile status(argv[3]);
  const int device = ::open(argv[1], O_RDWR | O_DIRECT | O_CLOEXEC);
  if (device < 0) Break(status, std::string(argv[1]) + ": " + std::strerror(errno));
  std::signal(SIGTERM, [](int) { stop = true; });
  status.Write("intact");
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { Worker(device, i * kBlocksOfThread, status).Run(); });
  }
  const auto end = Clock::now() + std::chrono::seconds(std::atoi(argv[2]));
  while (!stop && Clock::now() < end) {
    (void)::poll(nullptr, 0, kStatusMs);
    status.Write("intact " + Counts());
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  ::close(device);
  std::printf("intact: %s\n", Counts().c_str());
  return 0;
}
