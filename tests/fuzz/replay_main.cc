// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over files given as arguments (folders are read one level deep) when it is not
// built with libFuzzer. Fails when there is no input at all: an empty corpus tests nothing.
//   fuzz_NAME CORPUS...
//   fuzz_NAME --inputs N [--seed S] CORPUS...    N spoiled copies of the corpus (mutator.h), of
//   seeds
//                                                from S on; an input that crashes is named by its
//                                                seed
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/mutator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Sanitizers end the process by themselves.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

volatile uint64_t seed_in_progress = 0;

// Names the input in progress; may run in a signal handler.
void PrintSeed() {
  char digits[24];
  char* at = digits + sizeof digits;
  *--at = '\n';
  uint64_t rest = seed_in_progress;
  do {
    *--at = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  constexpr char kText[] = "\nthe input of --inputs 1 --seed ";
  const size_t length = static_cast<size_t>(digits + sizeof digits - at);
  if (write(STDERR_FILENO, kText, sizeof kText - 1) < 0 || write(STDERR_FILENO, at, length) < 0)
    _exit(2);
}

void OnSignal(int number) {
  PrintSeed();
  std::signal(number, SIG_DFL);
  raise(number);
}

void Spoil(std::vector<std::vector<uint8_t>> corpus, uint64_t seed, uint64_t inputs) {
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(PrintSeed);
  } else {
    for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) std::signal(number, OnSignal);
  }
  std::signal(SIGABRT, OnSignal);
  rocegw::testing::Mutator mutator(std::move(corpus));
  for (uint64_t i = 0; i < inputs; ++i) {
    seed_in_progress = seed + i;
    const std::vector<uint8_t>& input = mutator.Input(seed + i);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t seed = 1;
  uint64_t inputs = 0;
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    if (i + 1 < argc && std::strcmp(argv[i], "--inputs") == 0) {
      inputs = std::strtoull(argv[++i], nullptr, 0);
    } else if (i + 1 < argc && std::strcmp(argv[i], "--seed") == 0) {
      seed = std::strtoull(argv[++i], nullptr, 0);
    } else if (std::filesystem::is_directory(argv[i])) {
      for (const auto& entry : std::filesystem::directory_iterator(argv[i]))
        files.push_back(entry.path());
    } else {
      files.emplace_back(argv[i]);
    }
  }
  // The same on every machine: the seed of an input chooses among them by number.
  std::sort(files.begin(), files.end());
  std::vector<std::vector<uint8_t>> corpus;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  if (corpus.empty()) {
    std::printf("no inputs\n");
    return 1;
  }
  if (inputs != 0) {
    Spoil(std::move(corpus), seed, inputs);
    std::printf("%llu spoiled inputs\n", static_cast<unsigned long long>(inputs));
    return 0;
  }
  for (const std::vector<uint8_t>& input : corpus)
    LLVMFuzzerTestOneInput(input.data(), input.size());
  std::printf("%zu inputs replayed\n", corpus.size());
  return 0;
}
