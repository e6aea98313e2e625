// SPDX-License-Identifier: Apache-2.0
// Receivers for the programs of a pool. A message whose descriptors are not what is wanted, or were
// never asked for, costs the daemon's side a process (receiver_process.h): a hundred times what the
// program pays to send it. Beyond a rate, the messages of the pool wait, on the call queues of
// their programs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/base/timing/token_bucket.h"
#include "gateway/session/descriptors/descriptor_receiver.h"

namespace rocegw::session {

class PacedReceiver final : public DescriptorReceiver {
 public:
  // Limits of messages that cost a process.
  static constexpr uint32_t kPerSecond = 100;
  static constexpr uint32_t kBurst = 200;

  explicit PacedReceiver(std::shared_ptr<DescriptorReceiver> receiver)
      : receiver_(std::move(receiver)) {}

  PassedDescriptor Take(int socket, const WantedDescriptor& wanted,
                        std::vector<UniqueFd>& left) override;
  bool Discard(int socket) override;
  void Finish(std::vector<UniqueFd>& left) override { receiver_->Finish(left); }
  void Keep(int socket) override { receiver_->Keep(socket); }
  void Release(int socket) override { receiver_->Release(socket); }

 private:
  // Waits until the pool may cause a process to end.
  void AwaitTurn();

  const std::shared_ptr<DescriptorReceiver> receiver_;
  std::mutex mutex_;  // guards the next field; never held while waiting
  TokenBucket costly_{kPerSecond, kBurst};
};

// The receivers of all pools. Control thread; receivers may outlive it.
class PoolReceivers {
 public:
  // `receiver`: what receives for all pools. It must be the same for all calls of a pool.
  std::shared_ptr<DescriptorReceiver> Of(uint64_t pool,
                                         const std::shared_ptr<DescriptorReceiver>& receiver);

 private:
  std::unordered_map<uint64_t, std::shared_ptr<PacedReceiver>> by_pool_;
};

}  // namespace rocegw::session
