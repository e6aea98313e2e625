/* SPDX-License-Identifier: Apache-2.0
 *
 * Two computations over a large array, of the kind that RDMAbox runs in swapped memory: they scan
 * all of it again and again. The points and the result depend on the arguments only.
 *
 *   far_compute kmeans|logistic MEBIBYTES ROUNDS
 *
 * Prints one line of JSON: seconds of the rounds, and a digest that must be the same wherever the
 * memory lies. Exit status: 0, 1 no memory, 2 wrong usage. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kDimensions = 8, kClusters = 8 };

static double seconds_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static float next_fraction(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return (float)(*state >> 40) / 16777216.0f;
}

/* Lloyd's algorithm. */
static double kmeans(const float* points, size_t count, unsigned rounds) {
  double centres[kClusters][kDimensions];
  for (size_t k = 0; k < kClusters; k++) {
    for (size_t d = 0; d < kDimensions; d++)
      centres[k][d] = points[k * (count / kClusters) * kDimensions + d];
  }
  double error = 0;
  for (unsigned round = 0; round < rounds; round++) {
    double sums[kClusters][kDimensions] = {{0}};
    size_t members[kClusters] = {0};
    error = 0;
    for (size_t i = 0; i < count; i++) {
      const float* point = points + i * kDimensions;
      size_t best = 0;
      double nearest = INFINITY;
      for (size_t k = 0; k < kClusters; k++) {
        double distance = 0;
        for (size_t d = 0; d < kDimensions; d++)
          distance += (point[d] - centres[k][d]) * (point[d] - centres[k][d]);
        if (distance < nearest) {
          nearest = distance;
          best = k;
        }
      }
      error += nearest;
      members[best]++;
      for (size_t d = 0; d < kDimensions; d++) sums[best][d] += point[d];
    }
    for (size_t k = 0; k < kClusters; k++) {
      for (size_t d = 0; d < kDimensions && members[k] != 0; d++)
        centres[k][d] = sums[k][d] / (double)members[k];
    }
  }
  return error;
}

/* Gradient descent over all points; the last dimension says the class. */
static double logistic(const float* points, size_t count, unsigned rounds) {
  double weights[kDimensions] = {0};
  for (unsigned round = 0; round < rounds; round++) {
    double gradient[kDimensions] = {0};
    for (size_t i = 0; i < count; i++) {
      const float* point = points + i * kDimensions;
      double sum = 0;
      for (size_t d = 0; d + 1 < kDimensions; d++) sum += weights[d] * point[d];
      const double wanted = point[kDimensions - 1] > 0.5f ? 1 : 0;
      const double difference = 1 / (1 + exp(-sum)) - wanted;
      for (size_t d = 0; d + 1 < kDimensions; d++) gradient[d] += difference * point[d];
    }
    for (size_t d = 0; d < kDimensions; d++) weights[d] -= gradient[d] / (double)count;
  }
  double digest = 0;
  for (size_t d = 0; d < kDimensions; d++) digest += weights[d] * (double)(d + 1);
  return digest;
}

int main(int argc, char** argv) {
  if (argc != 4 || (strcmp(argv[1], "kmeans") != 0 && strcmp(argv[1], "logistic") != 0)) {
    fprintf(stderr, "usage: far_compute kmeans|logistic MEBIBYTES ROUNDS\n");
    return 2;
  }
  const size_t count = (strtoul(argv[2], NULL, 10) << 20) / (kDimensions * sizeof(float));
  const unsigned rounds = (unsigned)strtoul(argv[3], NULL, 10);
  float* points = malloc(count * kDimensions * sizeof *points);
  if (points == NULL || count == 0) {
    fprintf(stderr, "far_compute: no memory\n");
    return 1;
  }
  uint64_t state = 88172645463325252u;
  for (size_t i = 0; i < count * kDimensions; i++) points[i] = next_fraction(&state);
  const double begin = seconds_now();
  const double digest = strcmp(argv[1], "kmeans") == 0 ? kmeans(points, count, rounds)
                                                       : logistic(points, count, rounds);
  printf("{\"seconds\": %.3f, \"digest\": \"%.17g\"}\n", seconds_now() - begin, digest);
  free(points);
  return 0;
}
