// SPDX-License-Identifier: Apache-2.0
// A program with very many queue pairs, each connected to itself, and memory regions. It says so
// when they are all there, and keeps them until it is killed, or until its device ends: then it
// makes all anew on the next gateway's device, as a program that lives on does.
//
// Usage: many_objects QUEUE_PAIRS REGIONS [PROGRAMS], which all write to one standard output
#include <infiniband/verbs.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/bench/connected.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kGidIndex = 1;  // IPv4; index 0 is the link-local address
constexpr uint32_t kDepth = 16;
constexpr size_t kRegion = 4096;
constexpr useconds_t kTriesAgainUs = 100'000;
constexpr std::chrono::seconds kMostWithoutGateway{300};

[[noreturn]] void Fail(const char* what, int number) {
  std::printf("many_objects: %s %d: %s\n", what, number, std::strerror(errno));
  std::exit(1);
}

// A device with all objects of the program.
struct Objects {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  std::vector<ibv_qp*> queue_pairs;
  std::vector<ibv_mr*> regions;
  std::vector<char> memory = std::vector<char>(kRegion);
};

// Opens the first device. Returns false with errno while there is none.
bool Open(Objects& objects) {
  ibv_device** const devices = ibv_get_device_list(nullptr);
  if (devices == nullptr) return false;
  if (devices[0] == nullptr)
    errno = ENODEV;
  else
    objects.context = ibv_open_device(devices[0]);
  ibv_free_device_list(devices);
  return objects.context != nullptr;
}

void Make(Objects& objects, int queue_pairs, int regions) {
  ibv_gid gid{};
  objects.pd = ibv_alloc_pd(objects.context);
  objects.cq = ibv_create_cq(objects.context, kDepth, nullptr, nullptr, 0);
  if (objects.pd == nullptr || objects.cq == nullptr ||
      ibv_query_gid(objects.context, 1, kGidIndex, &gid) != 0)
    Fail("context", 0);
  for (int i = 0; i < queue_pairs; ++i) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = objects.cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {kDepth, kDepth, 1, 1, 0};
    ibv_qp* const qp = ibv_create_qp(objects.pd, &init);
    if (qp == nullptr || !ConnectToItself(qp, gid, kGidIndex, IBV_MTU_1024)) Fail("queue pair", i);
    objects.queue_pairs.push_back(qp);
  }
  for (int i = 0; i < regions; ++i) {
    ibv_mr* const region = ibv_reg_mr(objects.pd, objects.memory.data(), objects.memory.size(),
                                      IBV_ACCESS_LOCAL_WRITE);
    if (region == nullptr) Fail("region", i);
    objects.regions.push_back(region);
  }
}

void AwaitEndOfDevice(ibv_context* context) {
  ibv_async_event event{};
  do {
    if (ibv_get_async_event(context, &event) != 0) Fail("event", 0);
    ibv_ack_async_event(&event);
  } while (event.event_type != IBV_EVENT_DEVICE_FATAL);
}

void Destroy(Objects& objects) {
  for (ibv_mr* const region : objects.regions)
    if (ibv_dereg_mr(region) != 0) Fail("end of region", 0);
  for (ibv_qp* const qp : objects.queue_pairs)
    if (ibv_destroy_qp(qp) != 0) Fail("end of queue pair", 0);
  if (ibv_destroy_cq(objects.cq) != 0 || ibv_dealloc_pd(objects.pd) != 0 ||
      ibv_close_device(objects.context) != 0)
    Fail("end of context", 0);
}

[[noreturn]] void Live(int queue_pairs, int regions) {
  setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  Objects objects;
  if (!Open(objects)) Fail("device", 0);
  Make(objects, queue_pairs, regions);
  std::printf("all there\n");
  while (true) {
    AwaitEndOfDevice(objects.context);
    const auto ended = Clock::now();
    Destroy(objects);
    objects = {};
    while (!Open(objects)) {
      if (Clock::now() - ended > kMostWithoutGateway) Fail("device", 0);
      usleep(kTriesAgainUs);
    }
    Make(objects, queue_pairs, regions);
    const std::chrono::duration<double> without = Clock::now() - ended;
    std::printf("all there again after %.3f s\n", without.count());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: many_objects QUEUE_PAIRS REGIONS [PROGRAMS]\n");
    return 2;
  }
  const int queue_pairs = std::atoi(argv[1]);
  const int regions = std::atoi(argv[2]);
  if (argc == 3) Live(queue_pairs, regions);
  for (int i = 0; i < std::atoi(argv[3]); ++i) {
    const pid_t child = fork();
    if (child < 0) Fail("program", i);
    if (child != 0) continue;
    // None outlives the parent, which is what the benchmark kills.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Live(queue_pairs, regions);
  }
  int status = 0;
  while (wait(&status) > 0)
    if (status != 0) return 1;
}
