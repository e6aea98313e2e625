// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/shared_pool/pool_finder.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <random>
#include <utility>

#include "gateway/far/fleet/ask_agent.h"

namespace rocegw::far {
namespace {

constexpr std::chrono::seconds kLongestAnswer(30);
// Members of a host ask at different times.
constexpr uint32_t kAskSpreadMilliseconds = 1000;
static_assert(PoolFinder::kPause * 3 < std::chrono::seconds(15));

}  // namespace

PoolFinder::PoolFinder(std::string folder, DonorQuestion question)
    : folder_(std::move(folder)),
      question_(std::move(question)),
      stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

PoolFinder::~PoolFinder() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_fd_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

StatusOr<std::vector<SharedPoolSettings::Donor>> PoolFinder::Find() const {
  const auto found = AskAgent(folder_, question_, kLongestAnswer, stop_fd_.get());
  if (!found.ok()) return found.status();
  std::vector<SharedPoolSettings::Donor> donors;
  for (const NamedDonor& donor : found.value()) {
    if (donors.size() < SharedPool::kMostDonors)
      donors.push_back({donor.address, std::to_string(donor.port)});
  }
  return donors;
}

void PoolFinder::Start(SharedPool& pool) {
  thread_ = std::thread([this, &pool] { Run(pool); });
}

void PoolFinder::Run(SharedPool& pool) const {
  pthread_setname_np(pthread_self(), "rocegw-far-find");
  std::minstd_rand random(std::random_device{}());
  for (;;) {
    pollfd stop{stop_fd_.get(), POLLIN, 0};
    const auto pause = kPause.count() + static_cast<int64_t>(random() % kAskSpreadMilliseconds);
    if (poll(&stop, 1, static_cast<int>(pause)) > 0) return;
    const auto found = Find();
    if (found.ok() && !found.value().empty()) pool.SetDonors(found.value());
  }
}

}  // namespace rocegw::far
