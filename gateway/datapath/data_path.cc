// SPDX-License-Identifier: Apache-2.0
#include "gateway/datapath/data_path.h"

#include <sys/epoll.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "gateway/cm/connection/state_table.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::datapath {
namespace {

uint32_t Processors() { return std::max(1u, std::thread::hardware_concurrency()); }

void FillIn(const Config& config, session::Options& options) {
  options.trusted = config.default_pool.trusted;
  options.remap_allowed = config.default_pool.remap_allowed;
  options.gateways.features |= config.channel_congestion;
  options.placement = config.memory_placement;
  if (options.placement != MemoryPlacement::kDisabled)
    options.gateways.features |= wire::kOptionPlacement;
  options.gateways.discovery = config.gateways.discovery;
  options.gateways.channels = config.gateways.channels;
  options.gateways.paths = config.gateways.paths;
  options.gateways.vendor_id = config.gateways.vendor_id;
  const LimitsConfig& limits = config.default_pool.limits;
  options.limits = {
      limits.sessions,      limits.qps,        limits.cqs,           limits.srqs,
      limits.mrs,           limits.pds,        limits.cm_ids,        limits.registered_bytes,
      limits.segment_bytes, limits.heap_bytes, limits.remapped_bytes};
}

}  // namespace

size_t DataPath::WorkersOf(const Config& config) { return EffectiveWorkers(config, Processors()); }

DataPath::DataPath(const Config& config, ControlLoop& loop, Outside outside)
    : config_(config),
      loop_(loop),
      outside_(std::move(outside)),
      steering_(EffectiveWorkers(config, Processors())) {}

DataPath::~DataPath() { loop_.Unwatch(monitor_watch_); }

Status DataPath::StartPorts() {
  auto ports = Ports::Create(config_, steering_, outside_.open_dpdk, outside_.inherited);
  if (!ports.ok()) return ports.status();
  ports_ = std::move(*ports);
  return OkStatus();
}

Status DataPath::StartWorkers() {
  Status built = BuildWorkers();
  return built.ok() ? RunWorkers() : built;
}

Status DataPath::BuildWorkers() {
  Status opened = copies_.Open(config_.copy_engine, outside_.open_copy_engine,
                               steering_.worker_count(), outside_.log);
  // Another gateway may still hold the devices; its programs must not lose their connections.
  if (!opened.ok() && outside_.inherited == nullptr) return opened;
  if (!opened.ok()) outside_.log(session::Severity::kWarning, opened.text());
  return workers_.Build(config_, steering_, *ports_, copies_);
}

void DataPath::ParkWorkers() {
  sessions_->services().workers.SetHeld(true);
  workers_.Park();
}

// Takes in a second round what one worker handed over to another in the first.
bool DataPath::RestWorkers() {
  if (!workers_.are_parked()) return false;
  session::WorkerRequests& requests = sessions_->services().workers;
  bool all = true;
  for (size_t w = 0; w < workers_.count(); ++w)
    all = workers_.worker(w).Rest(ControlLoop::Now()) && all;
  if (requests.HasWork()) {
    requests.Work();
    return false;
  }
  if (!all) return false;
  for (size_t w = 0; w < workers_.count(); ++w)
    all = workers_.worker(w).Rest(ControlLoop::Now()) && all;
  return all && !requests.HasWork();
}

void DataPath::UnparkWorkers() {
  workers_.Unpark();
  sessions_->services().workers.SetHeld(false);
  // Messages that were held leave with the next round of the loop.
  loop_.Post([] {});
}

// The workers' threads do not run, so this thread applies the messages.
void DataPath::ApplyLinks() {
  session::WorkerRequests& requests = sessions_->services().workers;
  while (!requests.idle()) {
    (void)requests.Flush();
    for (size_t w = 0; w < workers_.count(); ++w) {
      while (workers_.worker(w).Prepare(ControlLoop::Now())) {
      }
    }
    requests.Work();
  }
}

Status DataPath::LinkSessions() {
  ApplyLinks();
  const int error = sessions_->attach().link_error();
  if (error == 0) return OkStatus();
  return {error, "a worker refused an object of a session that was handed over"};
}

Status DataPath::HandOverWorkers(hand_over::StateStream& state) {
  if (state.reading()) {
    if (Status linked = LinkSessions(); !linked.ok()) return linked;
  }
  for (size_t w = 0; w < workers_.count() && state.ok(); ++w) workers_.worker(w).HandOver(state);
  return OkStatus();
}

void DataPath::StartSessions(session::Options options) {
  FillIn(config_, options);
  options.gateways.window = ports_->SafeWindow();
  sessions_ = std::make_unique<session::SessionServer>(
      loop_, workers_.links(), steering_, Devices(), std::move(options), outside_.log,
      [this](const wire::Gid& destination, uint32_t interface_index) {
        return ports_->SourceFor(destination, interface_index);
      });
  sessions_->services().descriptors = outside_.descriptors;
  sessions_->cm().WaitForNeighbours();
  sessions_->services().multicast.membership = [this](size_t device, const wire::Gid& group,
                                                      bool joined) {
    return ports_->SetMembership(device, group, joined);
  };
  sessions_->services().multicast.capacity = [this](size_t device, bool ipv4) {
    return ports_->MembershipLimit(device, ipv4);
  };
  sessions_->captures().SetQueues(ports_->taps(), ports_->RecordingQueues());
  monitor_watch_ = loop_.Watch(ports_->monitor_fd(), EPOLLIN,
                               [this](uint32_t) { OnDeviceChange(ports_->Refresh()); });
  if (ports_->HasOwnDevices()) WatchOwnDevices();
}

bool DataPath::StopSessions(Duration within, Duration farewell) {
  loop_.Unwatch(std::exchange(monitor_watch_, 0));
  if (own_device_timer_ != 0) loop_.Cancel(std::exchange(own_device_timer_, 0));
  sessions_ended_ = false;
  sessions_->Shutdown([this] { sessions_ended_ = true; });
  loop_.Post([] {});  // starts the first round at once
  const TimePoint deadline = ControlLoop::Now() + within;
  while (!sessions_ended_ && ControlLoop::Now() < deadline) loop_.RunOnce(Milliseconds(100));
  if (!sessions_ended_) return false;
  const TimePoint patience = ControlLoop::Now() + farewell;
  while (!PeersKnow() && ControlLoop::Now() < patience) loop_.RunOnce(Milliseconds(10));
  sessions_.reset();
  return true;
}

bool DataPath::PeersKnow() const {
  const auto connections = sessions_->cm().engine().Connections();
  return std::none_of(connections.begin(), connections.end(), [](const cm::ConnectionRow& row) {
    return std::string_view(row.state) == cm::StateName(cm::ConnectionState::kDreqSent);
  });
}

std::vector<session::Device> DataPath::Devices() const {
  std::vector<session::Device> devices;
  for (size_t i = 0; i < ports_->device_count(); ++i) devices.push_back(ports_->device(i));
  return devices;
}

void DataPath::AddRows(session::StateSnapshot& snapshot) const {
  ports_->AddRows(snapshot);
  workers_.AddRows(snapshot);
}

// Queries the links of devices without a netdev every second: they report no change themselves.
void DataPath::WatchOwnDevices() {
  own_device_timer_ = loop_.At(ControlLoop::Now() + Seconds(1), [this] {
    OnDeviceChange(ports_->RefreshOwnDevices());
    WatchOwnDevices();
  });
}

void DataPath::OnDeviceChange(const std::vector<size_t>& changed) {
  for (const size_t index : changed) {
    const session::Device& device = ports_->device(index);
    outside_.log(
        session::Severity::kInfo,
        "device " + device.name + " (" + device.interface + "): " + (device.up ? "up" : "down") +
            ", " +
            std::to_string(std::count_if(device.gids.begin(), device.gids.end(),
                                         [](const wire::Gid& gid) { return !gid.IsZero(); })) +
            " addresses");
    sessions_->UpdateDevice(index, device);
    if (outside_.on_device_change) outside_.on_device_change(device);
  }
}

}  // namespace rocegw::datapath
