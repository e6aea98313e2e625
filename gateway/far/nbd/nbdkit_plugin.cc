// SPDX-License-Identifier: Apache-2.0
// Plugin of nbdkit: a session's space as a network block device, for kernels (nbd), QEMU and the
// tools of libnbd. nbdkit speaks the protocol; this file translates its calls.
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "gateway/far/session/naming/donor_name.h"
#include "gateway/far/session/session.h"
#include "gateway/far/session/zeroes.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

namespace rocegw::far {
namespace {

constexpr uint32_t kPreferredBytes = 64 << 10;
constexpr uint32_t kMostBytes = 32 << 20;
// Requests of the threads of nbdkit gather up to here.
constexpr uint64_t kMostQueued = 64 << 20;

struct Device {
  std::vector<std::string> donors;
  bool fleet = false;  // the agent names the donors
  std::string donors_dir = "/run/rocegw-donors";
  std::string tenant = "default";
  std::string disk_copy;
  int disk_copy_keep = 1;
  uint64_t size = 0;
  rocegw_memory_options options = ROCEGW_MEMORY_DEFAULTS;
  std::unique_ptr<Session> session;
};

Device& TheDevice() {
  static Device device;
  return device;
}

int ReadSize(const char* value, uint64_t* out) {
  const int64_t size = nbdkit_parse_size(value);
  if (size < 0) return -1;
  *out = static_cast<uint64_t>(size);
  return 0;
}

int Configure(const char* name, const char* value) {
  Device& device = TheDevice();
  const std::string key = name;
  if (key == "donor") {
    device.donors.emplace_back(value);
    return 0;
  }
  if (key == "donors") {
    device.fleet = std::string(value) == "fleet";
    if (!device.fleet) nbdkit_error("donors=%s: only donors=fleet is known", value);
    return device.fleet ? 0 : -1;
  }
  if (key == "donors-dir") {
    char* path = nbdkit_absolute_path(value);
    if (path == nullptr) return -1;
    device.donors_dir = path;
    std::free(path);
    return 0;
  }
  if (key == "tenant") {
    device.tenant = value;
    return 0;
  }
  if (key == "size") return ReadSize(value, &device.size);
  if (key == "slab") return ReadSize(value, &device.options.slab_bytes);
  if (key == "replicas") return nbdkit_parse_uint32_t(name, value, &device.options.replicas);
  if (key == "timeout") return nbdkit_parse_uint32_t(name, value, &device.options.timeout_ms);
  if (key == "disk-copy") {
    // nbdkit changes its directory when it becomes a daemon.
    char* path = nbdkit_absolute_path(value);
    if (path == nullptr) return -1;
    device.disk_copy = path;
    std::free(path);
    return 0;
  }
  if (key == "disk-copy-keep") {
    device.disk_copy_keep = nbdkit_parse_bool(value);
    return device.disk_copy_keep < 0 ? -1 : 0;
  }
  nbdkit_error("unknown parameter '%s'", name);
  return -1;
}

int ConfigureComplete() {
  const Device& device = TheDevice();
  if (!device.donors.empty() == device.fleet || device.size == 0) {
    nbdkit_error("size=SIZE, and either donor=HOST or donors=fleet, are needed");
    return -1;
  }
  if (const auto read = DonorList::Read(device.donors); !read.ok()) {
    nbdkit_error("%s", read.status().text().c_str());
    return -1;
  }
  return 0;
}

// nbdkit has become a daemon: threads and connections stay.
int Open() {
  Device& device = TheDevice();
  const auto donors = DonorList::Read(device.donors);
  donors.value().NameIn(device.options);  // ConfigureComplete has checked them
  if (device.fleet) device.options.donors_dir = device.donors_dir.c_str();
  device.options.size = device.size;
  device.options.tenant = device.tenant.c_str();
  device.options.most_queued_bytes = kMostQueued;
  if (!device.disk_copy.empty()) {
    device.options.disk_copy = device.disk_copy.c_str();
    device.options.disk_copy_keep = static_cast<uint32_t>(device.disk_copy_keep);
  }
  const auto settings = CheckOptions(device.options, sizeof device.options);
  Status status = settings.status();
  if (status.ok()) {
    auto session = Session::Open(settings.value());
    status = session.status();
    if (status.ok()) device.session = std::move(session.value());
  }
  if (!status.ok()) nbdkit_error("%s", status.text().c_str());
  return status.ok() ? 0 : -1;
}

void Close() {
  std::unique_ptr<Session>& session = TheDevice().session;
  if (session == nullptr) return;
  const Dispatcher::DiskEnd end = session->Stop();
  if (end.lacking != 0) {
    nbdkit_error(
        "the disk copy lacks %llu pages; they fail with EIO when the device is started again",
        static_cast<unsigned long long>(end.lacking));
  }
  if (!end.noted) {
    nbdkit_error(
        "the disk failed at the end: the disk copy may have old bytes, also in these pages");
  }
  session.reset();
}

int Answer(int error) {
  if (error == 0) return 0;
  nbdkit_set_error(-error);
  return -1;
}

int Flush(void* /*handle*/, uint32_t /*flags*/) {
  return Answer(TheDevice().session->dispatcher().FlushAndWait());
}

// Ends a write: with FUA it is on the disk copy, if there is one, before it is answered.
int EndWrite(int error, uint32_t flags) {
  if (error != 0 || (flags & NBDKIT_FLAG_FUA) == 0) return Answer(error);
  return Flush(nullptr, 0);
}

int Read(void* /*handle*/, void* buffer, uint32_t count, uint64_t offset, uint32_t /*flags*/) {
  return Answer(TheDevice().session->dispatcher().SubmitAndWait(
      Direction::kRead, offset, static_cast<uint8_t*>(buffer), count));
}

int Write(void* /*handle*/, const void* data, uint32_t count, uint64_t offset, uint32_t flags) {
  return EndWrite(TheDevice().session->dispatcher().SubmitAndWait(Direction::kWrite, offset,
                                                                  WrittenBytes(data), count),
                  flags);
}

// Trimmed bytes read as zero, so that replicas and disk copy stay equal.
int Zero(void* /*handle*/, uint32_t count, uint64_t offset, uint32_t flags) {
  return EndWrite(WriteZeroes(TheDevice().session->dispatcher(), offset, count), flags);
}

void* OpenHandle(int /*readonly*/) { return NBDKIT_HANDLE_NOT_NEEDED; }
int64_t GetSize(void* /*handle*/) { return static_cast<int64_t>(TheDevice().size); }
int CanFua(void* /*handle*/) { return NBDKIT_FUA_NATIVE; }
int Can(void* /*handle*/) { return 1; }

int BlockSize(void* /*handle*/, uint32_t* minimum, uint32_t* preferred, uint32_t* maximum) {
  *minimum = 1;
  *preferred = kPreferredBytes;
  *maximum = kMostBytes;
  return 0;
}

nbdkit_plugin MakePlugin() {
  nbdkit_plugin plugin{};
  plugin.name = "rocegw-memory";
  plugin.version = "1";
  plugin.longname = "rocegw remote memory";
  plugin.description = "block device in the memory of other hosts, by RDMA";
  plugin.config = Configure;
  plugin.config_complete = ConfigureComplete;
  plugin.config_help =
      "donor=HOST[:PORT]      host that donates; once for each donor\n"
      "donors=fleet           or: the controller chooses donors with room\n"
      "donors-dir=DIRECTORY   where the agent of this host answers (default: /run/rocegw-donors)\n"
      "size=SIZE              (required) bytes of the device\n"
      "replicas=COUNT         donors that hold each page (default: 1)\n"
      "tenant=NAME            name that quotas of donors apply to (default: default)\n"
      "slab=SIZE              unit of leases (default: 64M)\n"
      "timeout=MS             after which a donor that completes nothing is lost (default: 5000)\n"
      "disk-copy=FILE         gets all writes as well; serves when no donor does\n"
      "disk-copy-keep=BOOL    begin with what the file holds (default: true)";
  plugin.magic_config_key = "donor";
  plugin.after_fork = Open;
  plugin.cleanup = Close;
  plugin.open = OpenHandle;
  plugin.get_size = GetSize;
  plugin.block_size = BlockSize;
  plugin.can_multi_conn = Can;
  plugin.can_fua = CanFua;
  plugin.can_trim = Can;
  plugin.can_zero = Can;
  plugin.pread = Read;
  plugin.pwrite = Write;
  plugin.flush = Flush;
  plugin.trim = Zero;
  plugin.zero = Zero;
  plugin.errno_is_preserved = 0;
  return plugin;
}

nbdkit_plugin plugin = MakePlugin();

}  // namespace
}  // namespace rocegw::far

using rocegw::far::plugin;
NBDKIT_REGISTER_PLUGIN(plugin)
