/* The load of the benchmark for what wrk cannot do: streams, whose events it counts and times, and fixed rates.
 *
 *   load -p PORT -u PATH -c CONNECTIONS -d SECONDS [-w WARMUP] [-s SPREAD] [-r RATE] [-n REQUESTS] [-b BODYFILE]
 *        [-H "Name: value"]...
 *
 * Keep-alive connections to 127.0.0.1, one request at a time on each, one thread. Without a rate the next request leaves
 * when the last one is answered; with one, requests leave evenly and are timed from when they were due, so that waiting
 * for a free connection counts. Latencies are of requests begun after WARMUP seconds; events and answers are counted from
 * the start. SPREAD staggers the connections' first requests over as many seconds. One line of JSON tells the result;
 * times are microseconds.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

typedef enum { FREE, HEAD, SIZED, CHUNK_SIZE, CHUNK, CHUNK_END, TRAILER, TO_THE_END } State;
typedef struct {
    int fd, status, closes, matched; /* matched: letters of MARK seen so far */
    int filled;                      /* bytes of the head, or of a line of the chunked form */
    State state;
    long long left, events;
    int64_t begun, first, start_at;
    char head[16384];
} Connection;
typedef struct { int64_t *values; size_t count, room; } Series;

static const char MARK[] = "\ndata:";
static Connection *connections;
static int connection_count = 1, port, poller;
static char *request;
static size_t request_length;
static Series latencies, firsts;
static long long answers, refused, broken, events, fewest = -1, answers_timed, events_timed;
static int64_t began, timing_from;
static char sample[240];

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void append(Series *series, int64_t value) {
    if (series->count == series->room) {
        series->room = series->room ? series->room * 2 : 65536;
        series->values = realloc(series->values, series->room * sizeof *series->values);
    }
    series->values[series->count++] = value;
}

static void connect_again(Connection *c) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    if (c->fd >= 0) close(c->fd);
    c->state = FREE;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->fd, (struct sockaddr *)&to, sizeof to)) {
        close(c->fd);
        c->fd = -1;
        return;
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &(struct epoll_event){.events = EPOLLIN, .data.ptr = c});
}

static void give_up(Connection *c) {
    if (c->state != FREE) broken++;
    connect_again(c);
}

static void begin(Connection *c, int64_t due) {
    if (c->fd < 0) {
        connect_again(c);
        if (c->fd < 0) { broken++, c->start_at = now() + 10000000; return; }
    }
    c->state = HEAD, c->filled = 0, c->events = 0, c->first = 0, c->begun = due;
    for (size_t sent = 0; sent < request_length;) {
        ssize_t n = send(c->fd, request + sent, request_length - sent, MSG_NOSIGNAL);
        if (n > 0) sent += n;
        else if (n < 0 && errno == EINTR) continue;
        else { give_up(c); return; }
    }
}

static void finish(Connection *c) {
    int64_t at = now();
    answers++;
    if (c->status < 200 || c->status > 299) refused++;
    if (c->begun >= timing_from) {
        append(&latencies, at - c->begun);
        if (fewest < 0 || c->events < fewest) fewest = c->events;
    }
    if (at >= timing_from) answers_timed++;
    c->state = FREE;
    if (c->closes) connect_again(c);
}

static void take_body(Connection *c, const char *bytes, size_t count) {
    long long before = c->events;
    if (!c->first) {
        c->first = now(), c->matched = 1; /* a body begins as a line does */
        if (c->begun >= timing_from) append(&firsts, c->first - c->begun);
    }
    if (c->status > 299 && !*sample)
        for (size_t i = 0; i < count && i < sizeof sample - 1; i++)
            sample[i] = bytes[i] < 32 || bytes[i] == '"' || bytes[i] == '\\' || bytes[i] == 127 ? ' ' : bytes[i];
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == MARK[c->matched]) {
            if (!MARK[++c->matched]) c->events++, c->matched = 0;
        } else c->matched = bytes[i] == MARK[0];
    }
    events += c->events - before;
    if (now() >= timing_from) events_timed += c->events - before;
}

/* The head is whole: what kind of body follows. */
static void read_head(Connection *c) {
    const char *sized;
    c->status = atoi(c->head + 9);
    c->filled = 0;
    if (c->status == 100) return;
    c->closes = strcasestr(c->head, "\nconnection: close") != NULL;
    if (strcasestr(c->head, "\ntransfer-encoding: chunked")) c->state = CHUNK_SIZE;
    else if ((sized = strcasestr(c->head, "\ncontent-length:"))) {
        c->state = SIZED;
        if (!(c->left = atoll(sized + 16))) finish(c);
    } else c->state = TO_THE_END, c->closes = 1;
}

/* One byte of the head or of the chunked form's own lines. */
static void take_line_byte(Connection *c, char byte) {
    if (c->filled < (int)sizeof c->head - 1) c->head[c->filled++] = byte;
    c->head[c->filled] = 0;
    if (c->state == HEAD) {
        if (byte == '\n' && c->filled > 3 && !memcmp(c->head + c->filled - 4, "\r\n\r\n", 4)) read_head(c);
        return;
    }
    if (byte != '\n') return;
    int empty = c->filled <= 2;
    if (c->state == CHUNK_SIZE) c->state = (c->left = strtoll(c->head, NULL, 16)) ? CHUNK : TRAILER;
    else if (c->state == CHUNK_END) c->state = CHUNK_SIZE;
    else if (c->state == TRAILER && empty) finish(c);
    c->filled = 0;
}

static void take(Connection *c, const char *bytes, ssize_t count) {
    while (count > 0 && c->state != FREE) {
        ssize_t used = 1;
        if (c->state == SIZED || c->state == CHUNK) {
            used = count < c->left ? count : c->left;
            take_body(c, bytes, used);
            if (!(c->left -= used)) {
                if (c->state == SIZED) finish(c);
                else c->state = CHUNK_END;
            }
        } else if (c->state == TO_THE_END) take_body(c, bytes, used = count);
        else take_line_byte(c, *bytes);
        bytes += used, count -= used;
    }
}

static int by_size(const void *one, const void *other) {
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

static double quantile(Series *series, double share) {
    if (!series->count) return -1;
    return series->values[(size_t)(share * (series->count - 1) + 0.5)] / 1000.0;
}

static void print_series(const char *name, Series *series) {
    qsort(series->values, series->count, sizeof(int64_t), by_size);
    printf(",\"%s_p50\":%.1f,\"%s_p99\":%.1f", name, quantile(series, 0.5), name, quantile(series, 0.99));
}

static char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file) perror(path), exit(1);
    fseek(file, 0, SEEK_END);
    *length = ftell(file);
    rewind(file);
    char *bytes = malloc(*length + 1);
    if (fread(bytes, 1, *length, file) != *length) perror(path), exit(1);
    fclose(file);
    return bytes;
}

int main(int count, char **arguments) {
    const char *path = "/v1/chat/completions", *body_file = NULL;
    double seconds = 3, warmup = 0, spread = 0, rate = 0;
    long long most = -1;
    char headers[8192] = "";
    for (int option; (option = getopt(count, arguments, "p:u:c:d:w:s:r:n:b:H:")) != -1;) switch (option) {
        case 'p': port = atoi(optarg); break;
        case 'u': path = optarg; break;
        case 'c': connection_count = atoi(optarg); break;
        case 'd': seconds = atof(optarg); break;
        case 'w': warmup = atof(optarg); break;
        case 's': spread = atof(optarg); break;
        case 'r': rate = atof(optarg); break;
        case 'n': most = atoll(optarg); break;
        case 'b': body_file = optarg; break;
        case 'H': strncat(strncat(headers, optarg, 4000), "\r\n", 3); break;
        default: return 2;
    }
    size_t body_length = 0;
    char *body = body_file ? read_file(body_file, &body_length) : NULL;
    request = malloc(body_length + sizeof headers + 1024);
    request_length = sprintf(request, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
        "Content-Length: %zu\r\n%s\r\n", body ? "POST" : "GET", path, port, body_length, headers);
    if (body) memcpy(request + request_length, body, body_length);
    request_length += body_length;

    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_TIMERSLACK, 1);
    poller = epoll_create1(0);
    connections = calloc(connection_count, sizeof *connections);
    for (int i = 0; i < connection_count; i++) connections[i].fd = -1, connect_again(&connections[i]);
    int clock_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    epoll_ctl(poller, EPOLL_CTL_ADD, clock_fd, &(struct epoll_event){.events = EPOLLIN, .data.ptr = NULL});

    began = now();
    timing_from = began + (int64_t)(warmup * 1e9);
    int64_t end = timing_from + (int64_t)(seconds * 1e9), sent = 0;
    for (int i = 0; i < connection_count; i++)
        connections[i].start_at = began + (int64_t)(spread * 1e9 * i / connection_count);
    static char buffer[1 << 18];
    static struct epoll_event ready[1024];
    int64_t t, look_at = 0;
    int last = 0;
    while ((t = now()) < end && (most < 0 || answers < most)) {
        int64_t wake = end;
        for (int tried = 0; rate && tried < connection_count; tried++) {
            int64_t due = began + (int64_t)(sent * 1e9 / rate);
            if (due > t) { wake = due < wake ? due : wake; break; }
            Connection *c = &connections[last = (last + 1) % connection_count];
            if (c->state == FREE) begin(c, due), sent++;
        }
        if (!rate && t >= look_at) { /* first requests, and connections that could not be made */
            for (int i = 0; i < connection_count; i++)
                if (connections[i].state == FREE && connections[i].start_at <= t) begin(&connections[i], now());
            look_at = t + 5000000;
        }
        if (!rate && look_at < wake) wake = look_at;
        timerfd_settime(clock_fd, TFD_TIMER_ABSTIME,
            &(struct itimerspec){.it_value = {wake / 1000000000, wake % 1000000000}}, NULL);
        int n = epoll_wait(poller, ready, 1024, -1);
        for (int i = 0; i < n; i++) {
            Connection *c = ready[i].data.ptr;
            if (!c || c->fd < 0) continue; /* the clock: it is set anew anyway */
            ssize_t got = recv(c->fd, buffer, sizeof buffer, MSG_DONTWAIT);
            if (got > 0) take(c, buffer, got);
            else if (got == 0 && c->state == TO_THE_END) finish(c);
            else if (got == 0 || errno != EAGAIN) give_up(c);
            if (!rate && c->state == FREE && c->fd >= 0 && (most < 0 || answers < most)) begin(c, now());
        }
    }
    double timed = (now() - timing_from) / 1e9;
    int unfinished = 0;
    for (int i = 0; i < connection_count; i++) unfinished += connections[i].state != FREE;
    printf("{\"answers\":%lld,\"refused\":%lld,\"broken\":%lld,\"unfinished\":%d,\"events\":%lld,\"fewest_events\":%lld"
        ",\"seconds\":%.4f,\"answers_per_s\":%.1f,\"events_per_s\":%.1f", answers, refused, broken, unfinished, events,
        fewest, timed, answers_timed / timed, events_timed / timed);
    print_series("latency", &latencies);
    print_series("first", &firsts);
    printf(",\"sample\":\"%s\"}\n", sample);
}
