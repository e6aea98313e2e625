// SPDX-License-Identifier: Apache-2.0
// What registering memory costs a program, by size: beside copying it (RDMAbox, section 4: a copy
// to memory that is registered already, or a registration for each message?), and beside what a
// driver of hardware does, which is pinning its pages (here io_uring's buffers: the same call in
// the kernel). Then a WRITE to itself, out of memory that is there and touched: copied first, or
// registered for it.
//
//   register_cost             one line a size: bytes and microseconds of each, medians
//   register_cost far GIB     a region so large of which one page at the end is used
#include <infiniband/verbs.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/bench/connected.h"

namespace {

constexpr int kGidIndex = 1;  // IPv4; index 0 is the link-local address
constexpr size_t kLargest = size_t{64} << 20;
constexpr size_t kPage = 4096;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "register_cost: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

uint8_t* Map(size_t bytes, bool touched) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) Fail("mmap");
  if (touched) std::memset(at, 0x5C, bytes);
  return static_cast<uint8_t*>(at);
}

// A queue pair that is connected to itself.
class Device {
 public:
  Device() {
    ibv_device** const devices = ibv_get_device_list(nullptr);
    context_ = devices != nullptr && devices[0] != nullptr ? ibv_open_device(devices[0]) : nullptr;
    if (context_ == nullptr) Fail("no device");
    pd_ = ibv_alloc_pd(context_);
    cq_ = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_;
    init.qp_type = IBV_QPT_RC;
    init.cap = {16, 1, 1, 1, 0};
    qp_ = pd_ != nullptr && cq_ != nullptr ? ibv_create_qp(pd_, &init) : nullptr;
    ibv_gid gid{};
    if (qp_ == nullptr || ibv_query_gid(context_, 1, kGidIndex, &gid) != 0 ||
        !ConnectToItself(qp_, gid, kGidIndex, IBV_MTU_4096))
      Fail("queue pair");
  }
  ibv_mr* Register(uint8_t* at, size_t bytes) const {
    ibv_mr* const mr = ibv_reg_mr(pd_, at, bytes, kAccess);
    if (mr == nullptr) Fail("ibv_reg_mr");
    return mr;
  }
  static void Deregister(ibv_mr* mr) {
    if (ibv_dereg_mr(mr) != 0) Fail("ibv_dereg_mr");
  }
  void Write(const uint8_t* from, uint32_t lkey, size_t bytes, const uint8_t* to, uint32_t rkey) {
    ibv_sge sge{reinterpret_cast<uintptr_t>(from), static_cast<uint32_t>(bytes), lkey};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(to);
    wr.wr.rdma.rkey = rkey;
    ibv_send_wr* bad = nullptr;
    errno = ibv_post_send(qp_, &wr, &bad);
    if (errno != 0) Fail("ibv_post_send");
    ibv_wc wc{};
    int count = 0;
    while ((count = ibv_poll_cq(cq_, 1, &wc)) == 0) {
    }
    if (count < 0 || wc.status != IBV_WC_SUCCESS) Fail(ibv_wc_status_str(wc.status));
  }

 private:
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
};

// Pins pages for as long as they are registered, as drivers of devices do.
class Pinner {
 public:
  Pinner() {
    io_uring_params params{};
    ring_ = static_cast<int>(syscall(SYS_io_uring_setup, 1, &params));
  }
  bool available() const { return ring_ >= 0; }
  void PinAndUnpin(uint8_t* at, size_t bytes) const {
    const iovec buffer{at, bytes};
    if (syscall(SYS_io_uring_register, ring_, IORING_REGISTER_BUFFERS, &buffer, 1) != 0 ||
        syscall(SYS_io_uring_register, ring_, IORING_UNREGISTER_BUFFERS, nullptr, 0) != 0)
      Fail("io_uring_register");
  }

 private:
  int ring_;
};

// Microseconds, the median.
template <typename Action>
double Time(size_t bytes, Action action) {
  const size_t rounds = std::clamp<size_t>((size_t{256} << 20) / bytes, 5, 300);
  std::vector<double> took;
  for (size_t i = 0; i < rounds; ++i) {
    const auto began = std::chrono::steady_clock::now();
    action();
    took.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began)
            .count());
  }
  std::nth_element(took.begin(), took.begin() + static_cast<ptrdiff_t>(rounds / 2), took.end());
  return took[rounds / 2];
}

void BySize() {
  Device device;
  // A process that has such a descriptor may have pages pinned, and nothing of it is moved by
  // itself.
  const Pinner pinner;
  if (!pinner.available()) Fail("io_uring_setup");
  uint8_t* const target = Map(kLargest, true);
  uint8_t* const staging = Map(kLargest, true);
  const ibv_mr* const to = device.Register(target, kLargest);
  const ibv_mr* const staged = device.Register(staging, kLargest);
  for (size_t bytes = kPage; bytes <= kLargest; bytes *= 4) {
    uint8_t* const data = Map(bytes, true);
    const double copy = Time(bytes, [&] { std::memcpy(staging, data, bytes); });
    const double pin = Time(bytes, [&] { pinner.PinAndUnpin(data, bytes); });
    const double reg = Time(bytes, [&] { Device::Deregister(device.Register(data, bytes)); });
    const double copied = Time(bytes, [&] {
      std::memcpy(staging, data, bytes);
      device.Write(staging, staged->lkey, bytes, target, to->rkey);
    });
    const double registered = Time(bytes, [&] {
      ibv_mr* const mr = device.Register(data, bytes);
      device.Write(data, mr->lkey, bytes, target, to->rkey);
      Device::Deregister(mr);
    });
    std::printf("%zu %.1f %.1f %.1f %.1f %.1f\n", bytes, copy, pin, reg, copied, registered);
    munmap(data, bytes);
  }
}

void FarEnd(size_t gib) {
  Device device;
  const size_t bytes = gib << 30;
  uint8_t* const region = Map(bytes, false);
  uint8_t* const page = Map(kPage, true);
  const ibv_mr* const source = device.Register(page, kPage);
  ibv_mr* mr = nullptr;
  const double made = Time(kLargest * 64, [&] {
    if (mr != nullptr) Device::Deregister(mr);
    mr = device.Register(region, bytes);
  });
  uint8_t* const last = region + bytes - kPage;
  device.Write(page, source->lkey, kPage, last, mr->rkey);
  if (std::memcmp(last, page, kPage) != 0) Fail("the last page is not what was written");
  std::printf("%zu GiB registered again in %.0f us, its last page written\n", gib, made);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) {
    BySize();
  } else if (argc == 3 && std::string(argv[1]) == "far") {
    FarEnd(std::strtoull(argv[2], nullptr, 10));
  } else {
    std::fprintf(stderr, "usage: register_cost [far GIB]\n");
    return 2;
  }
  return 0;
}
