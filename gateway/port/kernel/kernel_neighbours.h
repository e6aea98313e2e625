// SPDX-License-Identifier: Apache-2.0
// Link layer of an interface shared with the kernel: its addresses, routes and neighbours, read by
// rtnetlink(7). A thread of this object watches for changes and looks up what queues ask for, so no
// queue waits for the kernel. It makes the kernel resolve unknown neighbours and keep known ones
// fresh; the kernel does ARP and neighbour discovery. kernel_answers.h bounds what pools may ask.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/port/kernel/kernel_answers.h"
#include "gateway/port/kernel/kernel_tables.h"
#include "gateway/port/kernel/local_address.h"
#include "gateway/port/kernel/netlink.h"
#include "gateway/port/link_layer.h"

namespace rocegw::port {

class KernelNeighbours final : public LinkLayer {
 public:
  // Is called with the own addresses at the start and after each change; by the creating thread
  // first, then by this object's thread.
  using Watch = std::function<void(const std::vector<wire::Gid>& own)>;

  // Opens in the calling thread's network namespace.
  static StatusOr<std::unique_ptr<KernelNeighbours>> Create(const std::string& interface,
                                                            Watch watch = {});
  ~KernelNeighbours() override;
  KernelNeighbours(const KernelNeighbours&) = delete;
  KernelNeighbours& operator=(const KernelNeighbours&) = delete;

  MacAddress mac() const override { return mac_; }
  std::vector<wire::Gid> OwnAddresses() override;
  Reach Resolve(const wire::Gid& destination, PoolTag pool, MacAddress& mac) override;
  void HandleFrame(std::span<const uint8_t> /*frame*/) override {}
  size_t TakeFrame(std::span<uint8_t, kMaxFrame> /*out*/) override { return 0; }
  void Tick() override {}

 private:
  KernelNeighbours(const InterfaceInfo& info, NetlinkSocket monitor, KernelTables tables,
                   UniqueFd wake, Watch watch);
  void Loop();
  void Wake();
  void ReadOwn();
  void LookUp(bool unknown, bool all, bool keep_fresh);
  KernelAnswers::Answer Ask(const wire::Gid& destination, bool keep_fresh);

  const std::string name_;
  const unsigned interface_index_;
  const MacAddress mac_;
  NetlinkSocket monitor_;  // used by the thread
  KernelTables tables_;    // used by the thread
  UniqueFd wake_;
  const Watch watch_;

  std::mutex mutex_;
  std::vector<wire::Gid> own_;
  KernelAnswers answers_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rocegw::port
