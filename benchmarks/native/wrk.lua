-- Tells wrk what to send, and prints one line of JSON in the words of load.c.
-- wrk ... -s wrk.lua URL -- BODYFILE "Name: value"...

function init(arguments)
    local file = assert(io.open(arguments[1], "rb"))
    wrk.method = "POST"
    wrk.body = file:read("*a")
    file:close()
    wrk.headers["Content-Type"] = "application/json"
    for index = 2, #arguments do
        local name, value = arguments[index]:match("^(.-):%s*(.*)$")
        wrk.headers[name] = value
    end
    request = wrk.format()
end

function done(summary, latency, _)
    local errors = summary.errors
    local seconds = summary.duration / 1e6
    io.write(string.format(
        '{"answers":%d,"refused":%d,"broken":%d,"seconds":%.4f,"answers_per_s":%.1f,"latency_p50":%.1f,"latency_p99":%.1f}\n',
        summary.requests, errors.status, errors.connect + errors.read + errors.write + errors.timeout, seconds,
        summary.requests / seconds, latency:percentile(50), latency:percentile(99)))
end
