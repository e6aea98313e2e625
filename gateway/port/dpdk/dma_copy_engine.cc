// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/dpdk/dma_copy_engine.h"

#include <rte_dev.h>
#include <rte_dmadev.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rocegw::port {
namespace {

constexpr uint16_t kChannel = 0;
constexpr uint16_t kDescriptors = 1024;
constexpr char kSkeleton[] = "dma_skeleton";

Status DeviceError(const std::string& name, const std::string& problem, int error) {
  return {error, "copy engine " + name + ": " + problem};
}

class DmaCopyQueue final : public memory::CopyQueue {
 public:
  static StatusOr<std::unique_ptr<DmaCopyQueue>> Open(const std::string& name);
  // The device stays with DPDK, so that it can be opened again.
  ~DmaCopyQueue() override {
    if (!abandoned_) (void)rte_dma_stop(device_);
  }
  DmaCopyQueue(const DmaCopyQueue&) = delete;
  DmaCopyQueue& operator=(const DmaCopyQueue&) = delete;

  uint32_t depth() const override { return depth_; }
  bool Add(uint8_t* to, const uint8_t* from, uint32_t length, uint32_t cookie) override {
    if (added_ - completed_ == depth_) return false;
    // The program reads the bytes soon: they may go to the cache.
    const int index = rte_dma_copy(device_, kChannel, reinterpret_cast<uintptr_t>(from),
                                   reinterpret_cast<uintptr_t>(to), length, RTE_DMA_OP_FLAG_LLC);
    if (index < 0) return false;
    cookies_[added_++ % depth_] = cookie;
    return true;
  }
  void Start() override { (void)rte_dma_submit(device_, kChannel); }
  size_t Poll(std::span<Completion> into) override {
    std::array<rte_dma_status_code, 32> states;
    uint16_t last = 0;
    const auto most = static_cast<uint16_t>(std::min(into.size(), states.size()));
    // Copies of a channel complete in the order of their descriptors.
    const uint16_t count = rte_dma_completed_status(device_, kChannel, most, &last, states.data());
    for (uint16_t i = 0; i < count; ++i) {
      into[i] = {cookies_[completed_++ % depth_], states[i] == RTE_DMA_STATUS_SUCCESSFUL};
    }
    return count;
  }
  // The driver idxd stops nothing, but the kernel ends all copies of a work queue when its file is
  // closed.
  bool Abandon() override {
    abandoned_ = rte_dma_stop(device_) == 0 && rte_dma_close(device_) == 0;
    return abandoned_;
  }

 private:
  DmaCopyQueue(int16_t device, uint32_t depth) : device_(device), depth_(depth), cookies_(depth) {}

  const int16_t device_;
  const uint32_t depth_;
  std::vector<uint32_t> cookies_;  // by number of the copy; copies from completed_ on are in flight
  uint64_t added_ = 0;
  uint64_t completed_ = 0;
  bool abandoned_ = false;
};

StatusOr<std::unique_ptr<DmaCopyQueue>> DmaCopyQueue::Open(const std::string& name) {
  const int device = rte_dma_get_dev_id_by_name(name.c_str());
  if (device < 0) return DeviceError(name, "DPDK has no such device", ENODEV);
  const auto id = static_cast<int16_t>(device);
  rte_dma_info info{};
  if (const int error = rte_dma_info_get(id, &info); error != 0)
    return DeviceError(name, std::strerror(-error), -error);
  constexpr uint64_t kNeeded = RTE_DMA_CAPA_MEM_TO_MEM | RTE_DMA_CAPA_OPS_COPY | RTE_DMA_CAPA_SVA;
  if ((info.dev_capa & kNeeded) != kNeeded) {
    return DeviceError(name,
                       "it cannot copy between addresses of a process (shared virtual addressing); "
                       "DSA can where the kernel's driver idxd owns it and the IOMMU is on",
                       ENOTSUP);
  }
  rte_dma_conf config{};
  config.nb_vchans = 1;
  rte_dma_vchan_conf channel{};
  channel.direction = RTE_DMA_DIR_MEM_TO_MEM;
  channel.nb_desc = std::clamp(kDescriptors, info.min_desc, info.max_desc);
  int error = rte_dma_configure(id, &config);
  if (error == 0) error = rte_dma_vchan_setup(id, kChannel, &channel);
  if (error == 0) error = rte_dma_start(id);
  if (error != 0) return DeviceError(name, std::strerror(-error), -error);
  // A ring of a power of two keeps one descriptor free.
  const uint32_t depth = std::max<uint32_t>(channel.nb_desc, 2) - 1;
  return std::unique_ptr<DmaCopyQueue>(new DmaCopyQueue(id, depth));
}

class DmaCopyEngine final : public memory::CopyEngine {
 public:
  ~DmaCopyEngine() override {
    queues_.clear();
    for (const std::string& name : made_) (void)rte_eal_hotplug_remove("vdev", name.c_str());
  }
  Status Add(const std::string& name) {
    if (name.starts_with(kSkeleton) && rte_dma_get_dev_id_by_name(name.c_str()) < 0) {
      if (const int error = rte_eal_hotplug_add("vdev", name.c_str(), ""); error != 0)
        return DeviceError(name, "DPDK does not make it; is its driver installed?", ENODEV);
      made_.push_back(name);
    }
    auto queue = DmaCopyQueue::Open(name);
    if (!queue.ok()) return queue.status();
    queues_.push_back(std::move(*queue));
    names_ += (names_.empty() ? "" : ", ") + name;
    return OkStatus();
  }

  size_t queues() const override { return queues_.size(); }
  memory::CopyQueue* queue(size_t worker) override {
    return worker < queues_.size() ? queues_[worker].get() : nullptr;
  }
  const std::string& devices() const override { return names_; }

 private:
  std::vector<std::string> made_;  // virtual devices
  std::vector<std::unique_ptr<DmaCopyQueue>> queues_;
  std::string names_;
};

std::vector<std::string> FoundDevices() {
  std::vector<std::string> names;
  for (int16_t id = rte_dma_next_dev(0); id >= 0;
       id = rte_dma_next_dev(static_cast<int16_t>(id + 1))) {
    rte_dma_info info{};
    if (rte_dma_info_get(id, &info) == 0) names.emplace_back(info.dev_name);
  }
  return names;
}

}  // namespace

StatusOr<std::unique_ptr<memory::CopyEngine>> OpenDmaCopyEngine(
    const std::vector<std::string>& devices, size_t workers) {
  std::vector<std::string> names = devices.empty() ? FoundDevices() : devices;
  if (names.empty()) return Status(ENODEV, "copy engine: DPDK found no device");
  auto engine = std::make_unique<DmaCopyEngine>();
  Status unsuitable = OkStatus();
  for (const std::string& name : names) {
    if (engine->queues() == workers) break;
    const Status added = engine->Add(name);
    if (added.ok()) continue;
    // DPDK also finds devices that do not suit.
    if (!devices.empty()) return added;
    if (unsuitable.ok()) unsuitable = added;
  }
  if (engine->queues() == 0) return unsuitable;
  return std::unique_ptr<memory::CopyEngine>(std::move(engine));
}

}  // namespace rocegw::port
