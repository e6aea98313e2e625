// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/measurement.h"

#include <sched.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace rocegw::bench {
namespace {

double Read(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace

Arguments ParseArguments(int argc, char** argv, int default_rounds) {
  Arguments arguments{default_rounds, {}, false};
  for (int i = 1; i < argc; ++i) {
    if (i + 1 < argc && std::strcmp(argv[i], "--rounds") == 0) {
      arguments.rounds = std::atoi(argv[++i]);
    } else if (i + 1 < argc && std::strcmp(argv[i], "--json") == 0) {
      arguments.json = argv[++i];
    } else if (std::strcmp(argv[i], "--realtime") == 0) {
      arguments.realtime = true;
    } else {
      arguments.rounds = 0;
    }
    if (arguments.rounds < 1) {
      std::fprintf(stderr, "usage: %s [--rounds N] [--json FILE] [--realtime]\n", argv[0]);
      std::exit(2);
    }
  }
  const sched_param lowest{1};
  if (arguments.realtime && sched_setscheduler(0, SCHED_RR, &lowest) != 0) {
    std::perror("--realtime");
    std::exit(1);
  }
  return arguments;
}

std::string Machine() {
  utsname system{};
  uname(&system);
  double load = 0;
  getloadavg(&load, 1);
  char text[256];
  std::snprintf(text, sizeof text, "%ld x %s, %s %s, load %.2f%s", sysconf(_SC_NPROCESSORS_ONLN),
                ProcessorName().c_str(), system.sysname, system.release, load,
                sched_getscheduler(0) == SCHED_RR ? ", round robin scheduling" : "");
  return text;
}

double ThreadCpuSeconds() { return Read(CLOCK_THREAD_CPUTIME_ID); }
double Seconds() { return Read(CLOCK_MONOTONIC); }

double ThreadCpuClockCost() {
  static const double cost = [] {
    std::vector<double> costs;
    for (int i = 0; i < 1001; ++i) {
      const double begin = ThreadCpuSeconds();
      costs.push_back(ThreadCpuSeconds() - begin);
    }
    return Median(costs);
  }();
  return cost;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void WriteJson(const Arguments& arguments, const std::string& text) {
  if (arguments.json.empty()) return;
  std::ofstream file(arguments.json);
  file << text << '\n';
  if (!file.flush()) std::perror(arguments.json.c_str());
}

}  // namespace rocegw::bench
